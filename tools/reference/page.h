#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/families.h"
#include "ops/table.h"
#include "signature.h"

namespace brasa::reference {

/// The overloads of one operator within a family, and the example of the first that has one.
struct Operator {
  std::string name;  // "gelu"
  std::vector<const ops::Row*> rows;
  std::vector<const gen::Signature*> functions;  // one a row, null where it is no C++ function
  std::string example;                           // C++; "" if there is none
};

/// A family's page. `slug` is the name of its files.
struct Page {
  std::string title, slug;
  std::vector<Operator> operators;
};

/// All pages of the table. `functions` are those of gen::signatures and outlive the pages.
std::vector<Page> pages_of(const std::vector<gen::Signature>& functions);

/// What an example printed, by the operator's name.
using Printed = std::map<std::string, std::string>;

/// The page as Markdown.
std::string page_text(const Page& page, const Printed& printed);
/// The list of all pages.
std::string index_text(const std::vector<Page>& pages);

/// A program that runs the page's examples and writes into the file that it is given what they print, each between
/// `\f<operator>\n` and the next `\f`.
std::string program_text(const Page& page);
Printed read_printed(const std::string& text);

}  // namespace brasa::reference
