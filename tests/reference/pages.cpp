#include <gtest/gtest.h>

#include <set>

#include "facts.h"
#include "page.h"
#include "support/str.h"

namespace brasa::test {
namespace {

using reference::Page;

std::vector<Page> pages() {
  static const std::vector<gen::Signature> functions = gen::signatures(ops::table());
  return reference::pages_of(functions);
}

int count(const std::string& text, const std::string& line) {
  int n = 0;
  for (size_t at = text.find(line); at != text.npos; at = text.find(line, at + 1)) ++n;
  return n;
}

TEST(Reference, HasEveryRowOnce) {
  std::string all;
  for (const Page& p : pages()) all += reference::page_text(p, {});
  for (const ops::Row& row : ops::table().rows()) {
    std::string line = "\n";
    append_to(line, row.schema);
    EXPECT_EQ(count(all, line + "\n"), 1) << line;
    EXPECT_TRUE(row.is_primitive() || !row.doc.empty()) << row.name();
  }
}

TEST(Reference, PagesHaveNamesOfTheirOwn) {
  std::set<std::string> slugs;
  for (const Page& p : pages()) EXPECT_TRUE(slugs.insert(p.slug).second) << p.slug;
}

TEST(Reference, EveryOperatorHasAnExample) {
  for (const Page& p : pages())
    for (const reference::Operator& op : p.operators)
      EXPECT_TRUE(op.rows[0]->is_primitive() || op.example.find("brasa::") != op.example.npos) << op.name;
}

TEST(Reference, FactsComeFromTheRules) {
  reference::Facts gelu = reference::facts_of(ops::at("aten::gelu"));
  EXPECT_TRUE(gelu.differentiable);
  EXPECT_EQ(std::count(gelu.dtypes.begin(), gelu.dtypes.end(), DType::Float32), 1);
  EXPECT_EQ(std::count(gelu.dtypes.begin(), gelu.dtypes.end(), DType::Int64), 0);
  reference::Facts argmax = reference::facts_of(ops::at("aten::argmax"));
  EXPECT_FALSE(argmax.differentiable);
  EXPECT_EQ(std::count(argmax.dtypes.begin(), argmax.dtypes.end(), DType::Int64), 1);
}

TEST(Reference, WhatExamplesPrintStandsOnThePage) {
  for (const Page& p : pages()) {
    if (p.slug != "softmax") continue;
    reference::Printed printed = reference::read_printed("\fsoftmax\n 0.5  0.5\n[ tensor ]\n\flog_softmax\n1\n");
    ASSERT_EQ(printed.size(), 2u);
    EXPECT_NE(reference::page_text(p, printed).find("```text\n 0.5  0.5\n[ tensor ]\n```"), std::string::npos);
    EXPECT_NE(reference::program_text(p).find("{\"softmax\", example"), std::string::npos);
  }
}

}  // namespace
}  // namespace brasa::test
