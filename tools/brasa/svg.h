#pragma once

#include <string>

/// Pieces of pictures: their text as SVG.
namespace brasa::tool::svg {

/// The head, on white. The picture ends with "</svg>\n".
std::string begin(double width, double height);
std::string text(double x, double y, const char* anchor, const std::string& what);
std::string line(double x1, double y1, double x2, double y2, const char* stroke, double width);
/// `title` appears under the pointer.
std::string rectangle(double x, double y, double width, double height, const char* fill, const std::string& title);
std::string escaped(const std::string& text);
/// One of seven, distinct for readers who see few colours (Okabe and Ito).
const char* colour(size_t i);

}  // namespace brasa::tool::svg
