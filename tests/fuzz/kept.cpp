// Programs that once gave something else than eager, minimised.
#include <gtest/gtest.h>

#include <ostream>

#include "fuzz/program.h"

namespace brasa::fuzz {
namespace {

struct Kept {
  const char *name, *text;
};
void PrintTo(const Kept& k, std::ostream* out) { *out << k.text; }

class KeptPrograms : public testing::TestWithParam<Kept> {};

TEST_P(KeptPrograms, AreEager) {
  for (const char* backend : {"interpreter", "inductor"})
    EXPECT_EQ(difference(parse(GetParam().text), backend), "") << backend;
}

const Kept kKept[] = {
    {"LargestOfWhatIsComputedAgain", R"(double
function: sigmoid 1 0 3; mean 3 4 5; exp 1 3 1; leaky 1 6 5; amax 0 2 3;
function:
call: 0 8 7 0 1 1 1 0 0)"},
    {"SymbolThatIsAComputedOne", R"(double
function: slice 1 7 3; unfold 0 6 2; softmax 0 5 3; squeeze 2 5 0; add 0 2 2;
function:
call: 0 2 5 0 0 0 1 0 0
call: 0 1 5 0 0 0 1 0 0)"},
    {"OneBetweenTwoBroadcasts", R"(double
function: expand 7 6 3; expand 1 5 1; scan 0 4 3; plus number 0 7 3; diagonal 1 7 5; expand 0 3 5; mul 1 4 5; sub 6 1 0;
call: 0 7 0 0 0 0 1 0 0)"},
    {"ResultsWithoutAGradient", R"(double
function: sum 7 7 3; detach 1 6 1; cumsum 0 2 5; penalty 0 3 0; state row 0 6 2; masked 1 4 1;
call: 0 3 0 0 1 1 1 0 0)"},
    {"SecondDerivativeOfAWrittenInput", R"(double
function: index_add_ 1 7 5;
call: 0 5 5 4 4 1 0 0 0)"},
    {"SecondDerivativeOfOverlappingLeaves", R"(single
function: add 5 4 5;
call: 0 4 3 2 4 1 1 0 0)"},
    {"SecondDerivativeBelowAHook", R"(single
function: times number 1 5 2;
call: 0 6 3 0 4 1 1 1 0)"},
    {"SecondDerivativeOfAFilledView", R"(single
function: fill_ 0 4 5;
call: 0 8 3 2 4 1 0 0 0)"},
    {"WriteThroughOverlappingWindows", R"(double
function: unfold 0 5 5; mul diagonal 0 0 0;
call: 0 6 3 0 0 0 1 0 0)"},
    {"CopyIntoAnOverlappingWindow", R"(double
function: unfold 0 5 3; masked 1 4 0; copy_ 1 4 4;
call: 0 3 3 0 0 0 1 0 0)"},
    {"HookOnWhatDiesBehindABreak", R"(double
function: sin 1 0 3; times number 0 3 5; sin 0 0 0; note 0 1 2; hook 2 6 2;
call: 0 3 3 0 1 1 1 0 0)"},
    {"GradientOfAResult", R"(single
function: penalty 3 0 2; double 0 3 1; sin 2 2 1; add to part 4 2 5; maximum 2 4 4;
call: 0 1 3 0 3 0 1 0 0)"},
    {"SizesOfHalves", R"(double
function: where 0 7 5; amax 6 4 3; leaky 3 0 3; sigmoid 0 5 0;
call: 0 8 1 4 0 0 1 0 0
call: 0 8 1 0 0 0 1 0 0
call: 0 8 1 0 5 1 1 0 0)"},
    {"ViewBeyondTheLimit", R"(double
function: masked 2 6 3; arange 0 4 1; squeeze 0 3 4; leaky 5 3 5; state row 1 7 0; squeeze 1 2 3; view 0 6 0; sin_ 1 7 3; tanh 1 6 3; softmax 1 2 2;
call: 0 7 0 0 0 0 1 0 0
call: 0 7 1 0 0 0 1 0 0)"},
    {"SnapshotOfWhatIsWrittenBehindABreak", R"(double
function: flip 0 5 1; div 0 2 5; cumsum 0 3 0; norm 0 1 3; mean 0 3 4; read 4 6 3; index_add_ 4 4 0;
call: 0 1 2 0 0 0 1 0 0
call: 0 7 2 0 4 1 1 0 0)"},
    {"TextOfALimitThatIsKnown", R"(double
function: index 0 5 2; where 1 2 5; add to part 0 0 3;
call: 0 8 0 0 0 0 1 0 0
call: 0 4 0 0 0 0 1 0 1
call: 0 3 0 0 0 1 1 0 0)"},
    {"StageOfABoundedSize", R"(double
function: arange 1 1 4; state row 0 3 4; slice 1 6 3; softmax 0 5 1; parameter 1 6 2;
call: 0 7 5 0 0 0 1 0 0)"},
    {"RetainedViewThatOthersLeadThrough", R"(single
function: stack 1 6 2; diagonal 0 7 3; contiguous 1 6 2; row 0 7 0; sub 6 5 0; split 0 0 0; read 6 7 1; contiguous 5 7 1; diagonal 1 4 1; retain 1 4 0;
call: 0 3 1 0 1 1 1 0 0)"},
    {"HistoryOfAnotherCallBehindAWrite", R"(double
function: penalty 0 1 0; softmax 0 2 3; sigmoid 1 4 0; amax 7 2 4; add to part 5 2 2;
call: 0 1 1 0 4 0 1 0 0
call: 0 1 1 0 4 0 1 0 1)"},
    {"RetainedWhereNoGradientIsWanted", R"(double
function: penalty 2 0 0; retain 1 3 4; gather 1 7 2; custom 0 0 0; note 4 2 3; gradient 1 1 2;
call: 0 7 2 4 0 1 1 0 0)"},
    {"WrittenResultOfACustomFunctionThatIsUnused", R"(double
function: custom 1 6 5; note 1 1 3; no_grad 0 2 1; mul_ 1 3 4; leaf 7 4 2;
function:
call: 0 6 1 0 3 1 1 0 0)"},
    {"HookOnAViewThatItsBaseIsCopiedInto", R"(double
function: hook 2 5 2; copy_ 0 3 3;
call: 0 3 0 5 1 1 0 0 0)"},
    {"WriteIntoWhatASnapshotReadFirst", R"(double
function: linear 1 1 4; branch 1 4 3; masked 1 4 3; add 0 2 0; roll 0 7 0; hook 0 3 1; branch 1 5 4; gradient 1 4 4; mul 2 0 4; custom 2 6 3; mul_ 6 3 1;
call: 0 1 4 0 0 0 1 0 0)"},
    {"SizesThatAreLearntOnTheWay", R"(double
function: leaky 1 7 3; leaky 4 7 3; diagonal 7 2 4; diagonal 6 7 1; penalty 1 1 0; leaky 5 0 4; diagonal 1 1 4; exp 0 4 4; backward 0 3 4; matmul 3 2 5;
function:
call: 1 4 3 0 0 0 1 0 0
call: 0 8 3 0 0 0 1 0 1
call: 0 3 3 0 0 1 1 0 0)"},
    {"HookBesideTheWayToAGradient", R"(double
function:
function: add_ 1 7 0; leaf 1 4 2; nonzero 6 0 5; dropout 1 1 3; hook 0 3 3;
call: 1 4 1 0 4 1 0 0 0)"},
    {"FreedSumOfAnUncompiledCall", R"(double
function: parameter 1 7 0; slice 0 6 0; add to part 7 4 1;
call: 0 1 3 0 0 0 1 0 0
call: 0 3 3 0 4 0 1 0 0
call: 0 1 3 0 2 0 1 0 1)"},
    {"UncompiledWriteOfAnotherDType", R"(double
function: cast 0 0 1; amax 1 5 5; add_ 1 7 2;
call: 0 1 3 0 0 0 1 0 0
call: 0 5 3 0 1 1 1 0 0)"},
    {"WriteOfAnotherDTypeWhereTheNodesStay", R"(double
function: custom 1 7 2; double 0 6 5; cast 1 3 1; add_ 0 2 3;
call: 0 6 3 0 3 1 1 0 0)"},
    {"GradientThatIsAResultOfACond", R"(double
function: cond 1 6 0; fill_ 6 7 1;
call: 0 4 4 0 0 1 1 0 0)"},
    {"ComparisonOfAViewWithoutAHistory", R"(double
function: chunk 1 1 3; zero part 2 3 0; count 6 7 3; associative scan 0 2 0;
call: 0 6 3 0 0 1 0 0 0)"},
    {"MaximumOfWhatIsComputedAgain", R"(double
function: expand 0 0 1; sigmoid 0 0 4; half 4 5 5; maximum 4 1 4; contiguous 0 1 5; clamp 3 5 2;
call: 0 1 3 1 5 1 1 0 0)"},
    {"StageOfARowBesideASumOfAllRows", R"(double
function: map 1 1 5; gradient 0 4 5;
call: 0 2 0 0 1 1 1 0 0)"},
    {"WriteThroughADetachedTensorBehindAView", R"(double
function: detach 1 4 5; fill_ 1 3 4; sub 0 2 1; fill_ 1 2 0; masked 0 4 4; detach 1 5 0; double 1 7 0; roll 6 2 5;
call: 0 4 2 5 5 1 0 0 0)"},
    {"WriteThroughADetachedTensorBesideLoops", R"(double
function: map 0 0 2; mul diagonal 0 4 5; map 0 1 1; detach 1 4 4; mul_ 0 2 3; scan 2 3 0;
function:
call: 0 6 3 0 3 0 1 0 0)"},
    {"HooksOfParametersThatPenaltiesShare", R"(double
function: penalty 0 1 0; penalty 0 7 1; squeeze 1 2 3; parameter 1 3 5; hook parameter 0 7 0; gather 1 0 1; hook parameter 3 5 5;
call: 0 8 7 0 5 0 1 0 0)"},
    {"HooksOfParametersBehindAnotherFunction", R"(double
function: matmul 0 2 5; plus number 0 0 1; call 1 1 2; hook parameter 0 3 3;
function: cond 0 6 0; state row 0 3 0; penalty 0 1 1; hook parameter 1 1 0; matmul 1 0 5; matmul 5 1 0; plus number 0 4 1;
call: 0 3 3 0 4 0 1 0 0)"},
    {"HooksOfParametersOfTwoFunctions", R"(double
function: hook parameter 3 1 4;
function: parameter 1 4 3; linear 0 7 1; hook parameter 0 5 3; parameter 1 2 1;
call: 0 3 6 0 0 0 1 0 0
call: 1 3 6 0 4 0 1 0 0)"},
};

INSTANTIATE_TEST_SUITE_P(All, KeptPrograms, testing::ValuesIn(kKept),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace brasa::fuzz
