package source

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// avoidedWords are the words that the style guide ("Plain English") replaces, with their replacements. They may not be
// part of an identifier.
var avoidedWords = map[string][]string{
	"report, emit, set the condition, observe": {"tell", "tells", "told", "say", "says", "saying", "said", "hear", "hears", "heard", "speak", "speaks"},
	"again, re-create":                         {"anew"},
	"enqueue, trigger":                         {"wake", "wakes", "woken", "waker"},
	"bound, nominated":                         {"landed"},
	"capacity":                                 {"room", "rooms"},
	"the user, the admin":                      {"whoever"},
	"provisioning latency":                     {"passage", "passages"},
	"queue, rate limit, admission":             {"lane", "lanes", "turn", "turns", "gate", "gates"},
	"set the policy to Delete; touch":          {"flip", "flips", "flipped", "nudge", "nudges", "nudged"},
	"reassigned, attempted":                    {"steered", "tried"},
	"tracker":                                  {"book", "books"},
	"candidate":                                {"suspect", "suspects", "suspected", "suspicion", "suspicions", "suspicious"},
}

// replacementOf maps each avoided word to its replacements.
var replacementOf = func() map[string]string {
	all := map[string]string{}
	for replacement, words := range avoidedWords {
		for _, word := range words {
			all[word] = replacement
		}
	}
	return all
}()

// partOfName matches one word of an identifier in camel case.
var partOfName = regexp.MustCompile(`^[a-z0-9]+|[A-Z][a-z0-9]+`)

// kubernetesGates matches Kubernetes' own terms, which contain an avoided word.
var kubernetesGates = regexp.MustCompile(`(?i)(feature|readiness|scheduling)gates?`)

// avoidedIn returns the replacement of the first avoided word in an identifier, or "".
func avoidedIn(identifier string) string {
	identifier = kubernetesGates.ReplaceAllString(identifier, "")
	for _, word := range partOfName.FindAllString(identifier, -1) {
		if replacement := replacementOf[strings.ToLower(word)]; replacement != "" {
			return replacement
		}
	}
	return ""
}

// declaredNames returns the identifiers that the product's packages declare, as "directory.identifier", each with the
// position of one declaration. keep selects them.
func (p *program) declaredNames(keep func(*ast.Ident, types.Object) bool) map[string]string {
	found := map[string]string{}
	for identifier, object := range p.info.Defs {
		if object == nil || object.Pkg() == nil || !keep(identifier, object) {
			continue
		}
		position := p.fset.Position(identifier.Pos())
		if strings.HasPrefix(filepath.Base(position.Filename), "zz_generated") || strings.HasPrefix(position.Filename, "testdata") {
			continue
		}
		found[strings.TrimPrefix(object.Pkg().Path(), module)+"."+identifier.Name] = position.String()
	}
	return found
}

// shortNameLength is the length above which a name needs no reason.
const shortNameLength = 4

// needsReason reports whether a name is so short that it needs a reason: package-level functions, and exported types,
// variables, constants and methods. Fields and other locals do not, because they are read next to their type.
func needsReason(identifier *ast.Ident, object types.Object) bool {
	name := identifier.Name
	if len(name) > shortNameLength || name == "_" || name == "init" || name == "main" || slices.Contains(standardNames, name) {
		return false
	}
	packageLevel := object.Parent() == object.Pkg().Scope()
	if function, is := object.(*types.Func); is {
		method := function.Signature().Recv() != nil
		return packageLevel || method && object.Exported()
	}
	return packageLevel && object.Exported()
}

// standardNames are those that Go's and Kubernetes' libraries use with the same meaning.
var standardNames = []string{
	"New", "Get", "List", "Read", "Set", "Add", "Run", "Next", "Len", "Less", "Swap", "Push", "Pop", "Is", "As", "Wait", "Done",
	"Stop", "Name", "Kind", "Key", "Keys", "All", "Has", "Err", "Do", "Load", "Peek", "Seek", "Dial", "Open", "Log", "Code",
}
