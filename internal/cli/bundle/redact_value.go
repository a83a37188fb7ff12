package bundle

import (
	"regexp"
	"strings"
)

// quotes match the opening quote of a value. In JSON in JSON, backslashes precede it.
// Their number is limited, because plain tries each position.
var quotes = regexp.MustCompile(`^\\{0,15}["']`)

// indentation matches the start of a line of YAML. The dash of a list item is part of it.
var indentation = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*`)

// scalar matches the header of a block of YAML.
var scalar = regexp.MustCompile(`^[|>][-+0-9]*[ \t\r]*\n`)

// nested matches the start of a list, a map, or a single word that begins in the line after its key.
var nested = regexp.MustCompile(`^(\s*\n\s*)(?:(-\s+)|[\w.-]+:\s|["']|\S+[ \t\r]*(?:\n|$))`)

// references match a list or map that has only names of Secrets, or nothing.
var references = regexp.MustCompile(`^(?:[\s\[\]{},-]*\\*["']?(?:name|namespace|secretName|optional|defaultMode)\\*["']?:[ \t]*\\*["']?[\w./-]+\\*["']?)*[\s\[\]{},-]*$`)

// printed matches a line up to a key without quotes in a map or struct that Go printed, or in a map of YAML.
var printed = regexp.MustCompile(`(?:map\[[^\]]*|\{[^"'}]*)$`)

// onlyValue matches a line of YAML that has one word or string as its value. A sentence has more.
var onlyValue = regexp.MustCompile(`^[ \t-]*\w+:[ \t]+(?:"[^"]*"|'[^']*'|\S+)[ \t\r]*$`)

// removeValues replaces the values of the keys that identify a secret.
func removeValues(text string, key *regexp.Regexp) string {
	var kept strings.Builder
	done := 0
	for _, at := range key.FindAllStringSubmatchIndex(text, -1) {
		name, separator, start := text[at[2]:at[3]], text[at[4]:at[5]], at[5]
		if start < done || !sensitive(name) {
			continue
		}
		before := text[strings.LastIndexByte(text[:at[2]], '\n')+1 : at[2]]
		line, _, _ := strings.Cut(text[at[2]:], "\n")
		if shortName.MatchString(name) && !strings.ContainsAny(separator, `"'=`) && !printed.MatchString(before) && !onlyValue.MatchString(before+line) {
			continue
		}
		from, to := findSecretValue(text, start, strings.Trim(before, " \t-\"'") == "")
		if from == to {
			continue
		}
		kept.WriteString(text[done:from] + redacted)
		done = to
	}
	return kept.String() + text[done:]
}

// findSecretValue returns where a value starts and ends, without its quotes. They are equal if nothing is secret
// in it. Only a key that begins its line may have its value in the next one.
func findSecretValue(text string, start int, begins bool) (from, to int) {
	rest := indentedBlock(text, start)
	if quote := quotes.FindString(rest); quote != "" {
		from = start + len(quote)
		return from, from + endOfQuotedValue(text[from:start+len(rest)], quote)
	}
	from, to = start, start+endOfPlainValue(rest)
	if scalar.MatchString(rest) {
		to = start + len(rest)
	} else if at := nested.FindStringSubmatch(rest); at != nil && begins {
		from, to = start+len(at[1])+len(at[2]), start+len(rest)
	}
	if strings.IndexAny(rest, "[{\r\n") == 0 && references.MatchString(text[from:to]) {
		return start, start
	}
	return from, to
}

// indentedBlock returns the rest of a line and the lines that belong to it in YAML and indented JSON. These
// are indented more, or begin with the dash of a list item or with a closing bracket.
func indentedBlock(text string, start int) string {
	line := strings.LastIndexByte(text[:start], '\n') + 1
	indent := len(indentation.FindString(text[line:start]))
	first, _, _ := strings.Cut(text[start:], "\n")
	end := start + len(first)
	for next := end; next < len(text); {
		line, _, _ := strings.Cut(text[next+1:], "\n")
		next += 1 + len(line)
		content := strings.TrimLeft(line, " \t")
		if strings.TrimSpace(content) == "" {
			continue
		}
		if deeper := len(line) - len(content) - indent; deeper < 0 || deeper == 0 && !strings.ContainsRune("-]}", rune(content[0])) {
			break
		}
		end = next
	}
	return text[start:end]
}

// endOfQuotedValue returns the length of a value after its opening quote. As many backslashes precede its closing
// quote, fewer the end of the JSON around it, and more a quote in the value. A cut value has no end.
func endOfQuotedValue(text, quote string) int {
	depth, mark, run := len(quote)-1, quote[len(quote)-1], 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			run++
			continue
		case mark:
			if mark == '\'' && i > 0 && strings.HasPrefix(text[i:], "''") { // YAML doubles it in the value
				i++
			} else if run < depth || run%(2*depth+2) == depth {
				return i - min(run, depth)
			}
		}
		run = 0
	}
	return len(text)
}

// endOfPlainValue returns the length of a value without quotes. It may be a list or a map in brackets.
func endOfPlainValue(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[' || c == '{':
			depth++
		case depth == 0 && strings.ContainsRune(" \t\r\n\"',;&)]}", rune(c)):
			return i
		case c == ']' || c == '}':
			depth--
		case depth > 0:
			if quote := quotes.FindString(text[i:]); quote != "" {
				i += len(quote)
				i += endOfQuotedValue(text[i:], quote) + len(quote) - 1
			}
		}
	}
	return len(text)
}
