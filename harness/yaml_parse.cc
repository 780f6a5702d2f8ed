// From bytes to nodes: yaml-cpp's events, with everything refused that a configuration must not contain.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "harness/yaml.h"

namespace fusebench {
namespace {

constexpr std::string_view kDocument = "document";  // the key that an error outside of all keys names

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the UTF-8 character that `text` starts with; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(bytes), is_continuation)) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool too_long = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool beyond_unicode = lead == 0xf4 && second > 0x8f;
  return too_long || surrogate || beyond_unicode ? 0 : bytes;
}

/// Knows where lines begin, to turn yaml-cpp's byte columns into the characters that an editor counts.
class SourceText {
 public:
  explicit SourceText(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // a byte order mark, which yaml-cpp skips too
    line_starts_.push_back(0);
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  /// A node without content at a place in the text.
  YamlNode at(std::size_t line, std::size_t byte_column) const {
    YamlNode node;
    line = std::min(line, line_starts_.size() - 1);
    const std::string_view before = text_.substr(line_starts_[line], byte_column);
    node.line = static_cast<int>(line) + 1;
    node.column =
        1 + static_cast<int>(std::count_if(before.begin(), before.end(), [](char c) { return !is_continuation(c); }));
    return node;
  }

  YamlNode at(const YAML::Mark& mark) const {
    return mark.is_null() ? at(0, 0) : at(static_cast<std::size_t>(mark.line), static_cast<std::size_t>(mark.column));
  }

  /// yaml-cpp replaces what is not UTF-8 and takes a control character for the end of the file: refused here.
  void check_characters(const YamlReader& reader) const {
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t bytes = character_bytes(text_.substr(i));
      const auto c = static_cast<unsigned char>(text_[i]);
      if (bytes == 0)
        throw reader.error(at_byte(i), kDocument, fmt::format("byte 0x{:02x} is not UTF-8; save the file as UTF-8", c));
      const bool line_end = c == '\n' || text_.substr(i, 2) == "\r\n";
      if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7f) {
        throw reader.error(at_byte(i), kDocument, fmt::format("control character 0x{:02x}; remove it", c));
      }
      i += bytes;
    }
  }

  /// Whether a quoted scalar that starts here ends: yaml-cpp lets the file's end close it.
  bool closes_quote(std::size_t start) const {
    const char quote = text_[start];
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || text_.substr(i, 2) != "''") return true;
        ++i;
      }
    }
    return false;
  }

  bool starts_quote(std::size_t byte) const {
    return byte < text_.size() && (text_[byte] == '"' || text_[byte] == '\'');
  }

 private:
  YamlNode at_byte(std::size_t byte) const {
    const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte);
    const auto line = static_cast<std::size_t>(next - line_starts_.begin()) - 1;
    return at(line, byte - line_starts_[line]);
  }

  std::string_view text_;
  std::vector<std::size_t> line_starts_;
};

/// Builds one document's tree. A map under construction holds its pending key in `pending`.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const YamlReader& reader, const SourceText& source) : reader_(reader), source_(source) {}

  const YamlNode& root() const { return root_; }

  /// The innermost key that is being read.
  std::string_view key() const {
    const auto level = std::find_if(open_.rbegin(), open_.rend(), [](const Level& l) { return l.has_key; });
    return level == open_.rend() ? kDocument : level->pending.text;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second document starts here; keep one document a file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (anchor != YAML::NullAnchor) fail_anchor(mark);
    finish(node_at(mark, YamlNode::Kind::null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases are not taken; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    YamlNode node = node_at(mark, YamlNode::Kind::scalar);
    node.text = value;
    node.quoted = tag == "!";
    const auto start = static_cast<std::size_t>(mark.pos);
    if (source_.starts_quote(start) && !source_.closes_quote(start)) fail(mark, "the quote is never closed; close it");
    finish(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode node;
    YamlNode pending;
    bool has_key = false;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view what) const {
    throw reader_.error(source_.at(mark), key(), what);
  }
  [[noreturn]] void fail_anchor(const YAML::Mark& mark) const {
    fail(mark, "anchors are not taken; remove the '&' name");
  }

  YamlNode node_at(const YAML::Mark& mark, YamlNode::Kind kind) const {
    YamlNode node = source_.at(mark);
    node.kind = kind;
    return node;
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) fail_anchor(mark);
    const bool untagged = tag.empty() || tag == "?" || tag == "!";  // plain or quoted
    if (!untagged) fail(mark, fmt::format("tag '{}' is not taken; remove it", tag));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    check(mark, tag, anchor);
    if (expects_key()) fail(mark, "a key is a list or a map; keys are plain words");
    open_.push_back({.node = node_at(mark, kind), .pending = {}, .has_key = false});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    finish(std::move(node));
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::map && !open_.back().has_key;
  }

  void finish(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (expects_key()) {
      take_key(std::move(node));
    } else if (open_.back().has_key) {
      open_.back().node.entries.push_back({std::move(open_.back().pending), std::move(node)});
      open_.back().has_key = false;
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
  }

  void take_key(YamlNode node) {
    if (node.kind == YamlNode::Kind::null) throw reader_.error(node, key(), "a key is missing before ':'; write one");
    if (node.text == "<<") throw reader_.error(node, node.text, "merge keys are not taken; write the keys out");
    if (const YamlEntry* first = open_.back().node.find(node.text)) {
      const std::string what = fmt::format("repeated key, first on line {}; keep one of them", first->key.line);
      throw reader_.error(node, node.text, what);
    }
    open_.back().pending = std::move(node);
    open_.back().has_key = true;
  }

  const YamlReader& reader_;
  const SourceText& source_;
  YamlNode root_;
  std::vector<Level> open_;
  int documents_ = 0;
};

}  // namespace

YamlNode YamlReader::parse(std::string_view text) const {
  const SourceText source(text);
  source.check_characters(*this);
  TreeBuilder builder(*this, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& problem) {
    throw error(source.at(problem.mark), builder.key(),
                fmt::format("not valid YAML: {}; correct the syntax", problem.msg));
  }
  const YamlNode& root = builder.root();
  if (root.kind == YamlNode::Kind::null) throw error(root, kDocument, "it is empty; write 'name:' and 'sweep:'");
  if (root.kind != YamlNode::Kind::map) throw error(root, kDocument, "is not a map; write 'key: value' lines");
  return root;
}

}  // namespace fusebench
