#pragma once

#include <string>
#include <vector>

namespace windtunnel {

/// Data that the page's script reads: `<script type="application/json" id=ID>`.
struct PageData {
  std::string id;
  std::string json;
};

/// One link of the navigation.
struct PagePlace {
  std::string id, title;
};

/// Contents of a page. The template, style and script are the same for every kind.
struct HtmlPage {
  std::string kind;   ///< "run", "compare", "sweep" or "validate"
  std::string title;  ///< text: what it is about
  std::string body;   ///< HTML: everything that must be there without a script
  std::vector<PagePlace> places = {};
  std::vector<PageData> data = {};
  std::string footer = {};  ///< HTML

  /// Adds a section to the body, and its link to the navigation, none where `place` is empty; nothing where there is no `html`.
  void add(const std::string& id, const std::string& place, const std::string& heading,
           const std::string& html);
};

/// The page as one file: no address of any kind in it, and a content policy that allows nothing but its own style and
/// script, each by its hash.
std::string html_document(const HtmlPage& page);

}  // namespace windtunnel
