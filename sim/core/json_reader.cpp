#include "core/json_reader.hpp"

namespace windtunnel::detail {

JsonEvent JsonReader::next() {
  read_token();
  if (expected_ == Expected::comma && token_->kind == TokenKind::comma) {
    const bool in_object = open_.back().bracket == TokenKind::object_begin;
    expected_ = in_object ? Expected::key : Expected::value;
    read_token();
  } else if (expected_ == Expected::colon && token_->kind == TokenKind::colon) {
    expected_ = Expected::value;
    read_token();
  } else if (expected_ == Expected::nothing && token_->kind == TokenKind::end) {
    return JsonEvent::end;
  }
  if (closes()) return close();
  if (expected_ == Expected::value) return value();
  if (expected_ != Expected::key || token_->kind != TokenKind::string) throw misplaced();
  expected_ = Expected::colon;
  return JsonEvent::key;
}

void JsonReader::read_token() {
  if (token_ != nullptr) {
    before_ = token_->kind;
    begin_of_before_ = token_->begin;
  }
  token_ = &lexer_.next();
}

bool JsonReader::closes() const {
  if (open_.empty()) return false;
  const TokenKind bracket = open_.back().bracket;
  const bool may_close = expected_ == Expected::comma || before_ == bracket;
  return may_close && token_->kind == (bracket == TokenKind::object_begin ? TokenKind::object_end
                                                                          : TokenKind::array_end);
}

JsonEvent JsonReader::close() {
  open_.pop_back();
  value_is_done();
  return token_->kind == TokenKind::object_end ? JsonEvent::object_end : JsonEvent::array_end;
}

JsonEvent JsonReader::value() {
  switch (token_->kind) {
    case TokenKind::object_begin:
      open_.push_back({token_->kind, token_->begin});
      expected_ = Expected::key;
      return JsonEvent::object_begin;
    case TokenKind::array_begin:
      open_.push_back({token_->kind, token_->begin});
      return JsonEvent::array_begin;
    case TokenKind::string:
      value_is_done();
      return JsonEvent::string;
    case TokenKind::word:
      return word();
    default:
      throw misplaced();
  }
}

JsonEvent JsonReader::word() {
  const std::string& text = token_->text;
  if (numbers_ == Numbers::of_python &&
      (text == "NaN" || text == "Infinity" || text == "-Infinity")) {
    value_is_done();
    return JsonEvent::null;
  }
  if (!is_json_word(token_->text)) throw misplaced();
  value_is_done();
  const char first = token_->text.front();
  if (first == 'n') return JsonEvent::null;
  return first == 't' || first == 'f' ? JsonEvent::boolean : JsonEvent::number;
}

JsonSyntaxError JsonReader::misplaced() const {
  return explain({*token_, expected_, open_.empty() ? std::nullopt : std::optional(open_.back()),
                  before_, begin_of_before_});
}

}  // namespace windtunnel::detail
