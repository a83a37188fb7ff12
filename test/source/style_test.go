package source

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMessagesKeepTheStyle checks that all of the product's messages follow the style guide.
func TestMessagesKeepTheStyle(t *testing.T) {
	p := product(t)
	var all []message
	for _, file := range p.filesBelow("internal") {
		all = append(all, messagesIn(p.fset, file)...)
	}
	const least = 400
	if len(all) < least {
		t.Fatalf("%d messages were found in the source, want at least %d", len(all), least)
	}
	for _, m := range all {
		if why := brokenRules(styleRules, m.text); len(why) > 0 {
			t.Errorf("%s:%d: %q\n\t%s", m.file, m.line, m.text, strings.Join(why, "\n\t"))
		}
	}
}

func TestStyleRules(t *testing.T) {
	for text, want := range map[string][]string{
		`no StorageClass %q in member %q (mapped from %q by spec.storage.classes). Create it there or change the mapping`: nil,
		"member %s lets go of it":         {`"lets go of": write "releases", or "abandons"`, `"member %s": write the name in quotes: %q`},
		"%d Pods run there":               {`"%d Pods": write a true plural: text.Count`},
		"make the class anew":             {`"anew": write "again", or "re-creates"`},
		"the volume stands for a leaf PV": {`"stands for": write "represents", or "has policy"`},
		"run `kubectl get claim %s`":      nil,
		"read Secret %s/%s":               {`"Secret %s": write the name in quotes: %q`, `" %s/%s": write the name in quotes: \"%s/%s\"`},
		"the member tells what it lacks":  {`"tells": write "shows", "reports"`},
		"it was made in the member":       {`"was made": write "is created", "is provisioned"`},
	} {
		if diff := cmp.Diff(want, brokenRules(styleRules, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestMessagesAreFound checks that messagesIn finds a message, however it is composed.
func TestMessagesAreFound(t *testing.T) {
	source := `package p
func f() {
	r.Recorder.Eventf(pod, nil, "Warning", reason, "Push", "an event of %s", x)
	return refuse(reason, "a refusal of " + "many parts in it")
	_ = Refusal{Reason: "R", Message: fmt.Sprintf("a field of %s", "two words")}
	logger.Error(err, "a line of the log")
	return fmt.Errorf("an error for the log %w", err)
}
`
	fset, got := token.NewFileSet(), map[string][]string{}
	for _, name := range []string{"internal/p/p.go", "internal/cli/p/p.go"} {
		file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messagesIn(fset, sourceFile{File: file, name: name}) {
			got[m.file] = append(got[m.file], m.text)
		}
	}
	want := []string{"an event of %s", "a refusal of ", "many parts in it", "a field of %s", "a line of the log"}
	if diff := cmp.Diff(map[string][]string{
		"internal/p/p.go": want, "internal/cli/p/p.go": append(slices.Clone(want), "an error for the log %w"),
	}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestLiteralsOf(t *testing.T) {
	for expression, want := range map[string][]string{
		`\bby hand\b`:           {"by hand"},
		`\bis? held to\b`:       {" held to"},
		`\b(is|are) nobody's\b`: {" nobody's"},
		`\bwoken\b|\bwakes?\b`:  {"woken", "wake"},
		`ever|[0-9]+`:           nil,
		`(?i)ever`:              nil,
	} {
		if diff := cmp.Diff(want, phrase(expression).literals); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}
