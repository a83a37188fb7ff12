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
	// User and password of a database driver, as in user:password@tcp(db:3306).
	{regexp.MustCompile(`[^\s"':@]+:[^\s"'@]+@(tcp|unix)\(`), Redacted + "@${1}("},
	// Tokens with a known form: of GitHub, GitLab, Slack, Vault, and AWS, with a secret after a slash.
	{regexp.MustCompile(`\b(gh[opsur]_|github_pat_|glpat-|hv[brs]\.)[\w-]{16,}|\bxox[a-z]-[\w-]{8,}|\b(AKIA|ASIA)[A-Z0-9]{16}(/[^\s"']+)?`), Redacted},
	// A Ceph key, whose name is too general for secretWords.
	{regexp.MustCompile(`(?i)\b(key[ \t]*[:=][ \t]*)[a-z0-9+/]{10,}={1,2}`), "${1}" + Redacted},
	{regexp.MustCompile(`(?i)\b((?:mysql|mariadb)[\w-]*\b[^\r\n]*?[ \t]-p)[^\s"']+`), "${1}" + Redacted},
	{regexp.MustCompile(`(?i)\b((?:passw(?:or)?d|passphrase|passcode) (?:is|was) ["']?)[^\s"']+`), "${1}" + Redacted},
	{regexp.MustCompile(`(?i)(<[\w.:-]*(?:` + secretWords + `)[\w.:-]*>)[^<]+`), "${1}" + Redacted},
	// Base64 and hexadecimal text that is longer than any digest.
	{regexp.MustCompile(`[A-Za-z0-9+/_-]{80,}={0,2}`), Redacted},
}

// secretWords match parts of names that identify a secret.
const secretWords = `passw(?:or)?d|passphrase|passcode|(?:_|admin|user|root)pass\b|pwd|secret|token|(?:api|user|admin|encryption|master|storage|shared)[-_]?key|access[-_]?key|account[-_]?key|private[-_]?key|client-key-data|client-certificate-data|certificate-authority-data|credential|signature|\bsig\b` //nolint:gosec // words that name credentials

// secretNames match whole names that identify a secret, but are parts of other words.
const secretNames = `pass|auth|otp|pin|dsn`

var secretName = regexp.MustCompile(`(?i)` + secretWords + `|^(?:` + secretNames + `)$`)

// assignment matches a name that identifies a secret, and its value. The name may be a JSON or YAML key,
// a flag, or a parameter of a URL. A value in double quotes may contain escaped quotes. It may also be a
// list, or a block of YAML.
var assignment = regexp.MustCompile(`(?i)([\w.-]*(?:` + secretWords + `)[\w.-]*|\b(?:` + secretNames + `)\b)(\\?["']?[ \t]*[:=][ \t]*)` +
	`(\\"(?:[^"\\\r\n]|\\{2,}.)*\\"|"(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*'|\[[^\]\r\n]*\]|[|>][-+0-9]*[ \t]*(?:\r?\n[ \t]+[^\r\n]*)+|[^\s"',;&}\])]+)`)

// flag matches a flag that identifies a secret, and its value in the next argument.
var flag = regexp.MustCompile(`(?i)(--?[\w-]*(?:` + secretWords + `)[\w-]*)([ \t]+)([^\s"'-][^\s"']*)`)

// userinfo matches a URL up to its last @, and what follows.
var userinfo = regexp.MustCompile(`://[^\s"'<>\\]*@([^\s"'<>\\@]*)`)

// harmless lists suffixes of names whose values are not secret, such as names of objects and times.
var harmless = []string{"name", "names", "ref", "refs", "namespace", "lifetime", "expires", "expiry", "count", "type", "audience", "automountserviceaccounttoken"}

// Text replaces all credentials that it recognizes in a text.
func Text(text string) string {
	for _, p := range patterns {
		text = p.match.ReplaceAllString(text, p.with)
	}
	text = userinfo.ReplaceAllStringFunc(text, func(found string) string {
		host := userinfo.FindStringSubmatch(found)[1]
		if strings.HasPrefix(host, "sha256:") { // the digest of an image
			return found
		}
		return "://" + Redacted + "@" + host
	})
	for _, named := range []*regexp.Regexp{flag, assignment} {
		text = named.ReplaceAllStringFunc(text, func(found string) string {
			parts := named.FindStringSubmatch(found)
			if !sensitive(parts[1]) {
				return found
			}
			quote := quotes.FindString(parts[3])
			return parts[1] + parts[2] + quote + Redacted + quote
		})
	}
	return text
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
