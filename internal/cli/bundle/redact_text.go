package bundle

import (
	"regexp"
	"slices"
	"strings"
)

// redacted replaces what was removed.
const redacted = "REDACTED"

// shortest is the minimum length of a known secret. Shorter ones are parts of ordinary words.
const shortest = 6

// patterns match credentials in text. Each one comes with its replacement.
var patterns = []struct {
	match *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`), redacted},
	// JSON Web Tokens: service account tokens, for example.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)([ :=]+)["']?[A-Za-z0-9._~+/=-]{4,}`), "${1}${2}" + redacted},
	{regexp.MustCompile(`(?i)\b(authorization|proxy-authorization|cookie|set-cookie|x-auth-token|x-api-key)(["']?[ \t]*[:=][ \t]*)[^\r\n]*`), "${1}${2}" + redacted},
	// User and password of a database driver, as in user:password@tcp(db:3306).
	{regexp.MustCompile(`[^\s"':@]+:[^\s"']+@(tcp|unix)\(`), redacted + "@${1}("},
	// Tokens with a known form: of GitHub, GitLab, Slack, Vault, and AWS, with a secret after a slash.
	{regexp.MustCompile(`\b(gh[opsur]_|github_pat_|glpat-|hv[brs]\.)[\w-]{16,}|\bxox[a-z]-[\w-]{8,}|\b(AKIA|ASIA)[A-Z0-9]{16}(/[^\s"']+)?`), redacted},
	// A Ceph key, whose name is too general for secretWords.
	{regexp.MustCompile(`(?i)\b(key[ \t]*[:=][ \t]*)[a-z0-9+/]{10,}={1,2}`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)\b((?:mysql|mariadb)[\w-]*\b[^\r\n]*?[ \t]-p)[^\s"']+`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)\b((?:passw(?:or)?d|passphrase|passcode) (?:is|was) ["']?)[^\s"']+`), "${1}" + redacted},
	{regexp.MustCompile(`(?i)(<[\w.:-]*(?:` + secretWords + `)[\w.:-]*>)[^<]+`), "${1}" + redacted},
	// Base64 and hexadecimal text that is longer than any digest.
	{regexp.MustCompile(`[A-Za-z0-9+/_-]{80,}={0,2}`), redacted},
}

// secretWords match parts of names that identify a secret.
const secretWords = `passw(?:or)?d|passphrase|passcode|(?:_|admin|user|root)pass\b|pwd|secret|token|(?:api|user|admin|encryption|master|storage|shared)[-_]?key|access[-_]?key|account[-_]?key|private[-_]?key|client-key-data|client-certificate-data|certificate-authority-data|credential|signature|\bsig\b` //nolint:gosec // words that name credentials

// secretNames match whole names that identify a secret, but are parts of other words.
const secretNames = `pass|auth|otp|pin|dsn`

var secretName = regexp.MustCompile(`(?i)` + secretWords + `|^(?:` + secretNames + `)$`)

// shortName matches a name that is also an ordinary word or the name of a host.
var shortName = regexp.MustCompile(`(?i)^(?:` + secretNames + `)$`)

// keys match a name that may identify a secret, and what separates it from its value.
var keys = []*regexp.Regexp{
	// A flag, and its value in the next argument. Words such as pull-secret are not flags.
	regexp.MustCompile(`(?i)(?:^|[^\w.-])(--?[\w-]*(?:` + secretWords + `)[\w-]*)([ \t]+|[ \t]*\r?\n[ \t]*-[ \t]+)[^\s-]`),
	// The same in quotes, as in JSON. The value must be in quotes too, because a sentence may quote a flag.
	regexp.MustCompile(`(?i)["'](--?[\w-]*(?:` + secretWords + `)[\w-]*)(\\*["'](?:,|[ \t]|\r?\n[ \t]*-)\s*)\\*["'][^-]`),
	// An environment variable of a container.
	regexp.MustCompile(`(?i)\bname\\*["']?:[ \t]*\\*["']?([\w.-]*(?:` + secretWords + `)[\w.-]*)(\\*["']?,?\s*\\*["']?value\\*["']?:[ \t]*)`),
	// A key of JSON or YAML, a variable, a flag, or a parameter of a URL.
	regexp.MustCompile(`(?i)([\w.-]*(?:` + secretWords + `)[\w.-]*|\b(?:` + secretNames + `)\b)(\\*["']?[ \t]*[:=]+>?[ \t]*)`),
}

// userinfo matches a URL up to its last @, and what follows.
var userinfo = regexp.MustCompile(`[\w+.-]*://[^\s"'<>\\]*@([^\s"'<>\\@]*)`)

// digest matches the digest of an image at the end of a URL.
var digest = regexp.MustCompile(`@sha\d+:[^@]*$`)

// host matches the start of a URL whose @ is in its path. Others with a slash before the @ may have
// it in a password, as in postgres://john.doe:1/2@db.
var host = regexp.MustCompile(`(?i)^(?:https?://(?:[\w-]+\.)+[\w-]+(?::\d{1,5})?/|[^:]*://(?:[\w-]+\.)+[\w-]+/|[^:]*://[\w-]+(?::\d{1,5})?/@)`)

// harmless lists suffixes of names whose values are not secret, such as names of objects and times.
var harmless = []string{"name", "names", "ref", "refs", "namespace", "lifetime", "expires", "expiry", "count", "type", "audience", "automountserviceaccounttoken"}

// harmlessFlag matches flags that have no value, and flags for the name of a Secret.
var harmlessFlag = regexp.MustCompile(`^--?(?:(?:overwrite|with|without|no|enable|disable|skip|allow|show|renew|rotate)-|[\w-]*(?:pull|kubeconfig|tls)-secrets?$)`)

// redactText replaces all credentials that it recognizes in a text.
func redactText(text string) string {
	for _, p := range patterns {
		text = p.match.ReplaceAllString(text, p.with)
	}
	text = removeUserinfo(text)
	for _, key := range keys {
		text = removeValues(text, key)
	}
	return text
}

// removeUserinfo replaces users and passwords in URLs.
func removeUserinfo(text string) string {
	return userinfo.ReplaceAllStringFunc(text, func(found string) string {
		if at := digest.FindStringIndex(found); at != nil {
			return removeUserinfo(found[:at[0]]) + found[at[0]:]
		}
		if start := host.FindString(found); start != "" { // another URL may follow
			return start + removeUserinfo(found[len(start):])
		}
		scheme, _, _ := strings.Cut(found, "://")
		return scheme + "://" + redacted + "@" + userinfo.FindStringSubmatch(found)[1]
	})
}

// sensitive reports whether a name identifies a secret.
func sensitive(name string) bool {
	name = strings.ToLower(name)
	return secretName.MatchString(name) && !harmlessFlag.MatchString(name) &&
		!slices.ContainsFunc(harmless, func(end string) bool { return strings.HasSuffix(name, end) })
}

// knownSecrets replaces values that are known to be secret.
type knownSecrets struct{ values []string }

// addSecret adds a secret value, unless it is too short.
func (k *knownSecrets) addSecret(value string) {
	if value = strings.TrimSpace(value); len(value) < shortest || slices.Contains(k.values, value) {
		return
	}
	k.values = append(k.values, value)
	// Longer values come first, because a shorter one may be part of them.
	slices.SortStableFunc(k.values, func(a, b string) int { return len(b) - len(a) })
}

// removeSecrets replaces the known values in a text.
func (k *knownSecrets) removeSecrets(text string) string {
	for _, v := range k.values {
		text = strings.ReplaceAll(text, v, redacted)
	}
	return text
}
