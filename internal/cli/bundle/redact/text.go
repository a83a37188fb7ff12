package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces what was removed.
const Redacted = "REDACTED"

// shortest is the minimum length of a known secret. Shorter ones are parts of ordinary words.
const shortest = 6

// patterns match credentials in text. Each one comes with its replacement.
var patterns = []struct {
	match *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`), Redacted},
	// JSON Web Tokens: service account tokens, for example.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), Redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)([ :=]+)["']?[A-Za-z0-9._~+/=-]{4,}`), "${1}${2}" + Redacted},
	{regexp.MustCompile(`(?i)\b(authorization|proxy-authorization|cookie|set-cookie|x-auth-token|x-api-key)(["']?[ \t]*[:=][ \t]*)[^\r\n]*`), "${1}${2}" + Redacted},
	// User and password in a URL.
	{regexp.MustCompile(`://[^/\s:@"']+:[^/\s@"']+@`), "://" + Redacted + "@"},
	// Base64 and hexadecimal text that is longer than any digest.
	{regexp.MustCompile(`[A-Za-z0-9+/_-]{80,}={0,2}`), Redacted},
}

// secretWords match parts of names that identify a secret.
const secretWords = `passw(?:or)?d|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|account[-_]?key|private[-_]?key|client-key-data|client-certificate-data|certificate-authority-data|credential|signature|\bsig\b` //nolint:gosec // words that name credentials

var secretName = regexp.MustCompile(`(?i)` + secretWords)

// assignment matches a name that contains one of secretWords, and its value. The name may be a JSON
// or YAML key, a flag, or a parameter of a URL.
var assignment = regexp.MustCompile(`(?i)([\w.-]*(?:` + secretWords + `)[\w.-]*)(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"\r\n]*"|'[^'\r\n]*'|[^\s"',;&}\])]+)`)

// harmless lists suffixes of names whose values are not secret, such as names of objects and times.
var harmless = []string{"name", "names", "ref", "refs", "namespace", "lifetime", "expires", "expiry", "count", "type", "audience", "automountserviceaccounttoken", "secrets", "tokens"}

// Text replaces all credentials that it recognizes in a text.
func Text(text string) string {
	for _, p := range patterns {
		text = p.match.ReplaceAllString(text, p.with)
	}
	return assignment.ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment.FindStringSubmatch(found)
		if !sensitive(parts[1]) {
			return found
		}
		quote := quotes.FindString(parts[3])
		return parts[1] + parts[2] + quote + Redacted + quote
	})
}

// quotes matches the opening quote of a value.
var quotes = regexp.MustCompile(`^\\?["']`)

// sensitive reports whether a name identifies a secret.
func sensitive(name string) bool {
	name = strings.ToLower(name)
	return secretName.MatchString(name) && !slices.ContainsFunc(harmless, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Known replaces values that are known to be secret.
type Known struct{ values []string }

// Add adds a secret value, unless it is too short.
func (k *Known) Add(value string) {
	if value = strings.TrimSpace(value); len(value) < shortest || slices.Contains(k.values, value) {
		return
	}
	k.values = append(k.values, value)
	// Longer values come first, because a shorter one may be part of them.
	slices.SortStableFunc(k.values, func(a, b string) int { return len(b) - len(a) })
}

// Remove replaces the known values in a text.
func (k *Known) Remove(text string) string {
	for _, v := range k.values {
		text = strings.ReplaceAll(text, v, Redacted)
	}
	return text
}
