package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// namespace is the manager's namespace in config/.
const namespace = "xylem-system"

// template is a generated template of a chart.
type template struct {
	file  string
	kinds []string
	// from is the kustomization that builds the objects, if it is not the chart's.
	from string
	// only and without select objects by name: only this one, or all except this one.
	only, without string
	// condition is the condition under which the template has output. keep is the condition for the
	// annotation that makes Helm keep the objects on uninstall.
	condition, keep string
}

// Placeholders for template actions, which are not YAML.
const (
	placeLabels = "PLACE-OF-LABELS"
	placeKeep   = "PLACE-OF-KEEP"
)

var (
	labelsLine = regexp.MustCompile(`(?m)^  labels: ` + placeLabels + `$`)
	keepLine   = regexp.MustCompile(`(?m)^    ` + placeKeep + `: ""$`)
)

// split parses a stream of YAML documents.
func split(stream []byte) ([]map[string]any, error) {
	var objects []map[string]any
	decoder := yaml.NewDecoder(bytes.NewReader(stream))
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// render returns the template's text, with all objects that the template selects.
func (c chart) render(t template, objects []map[string]any) ([]byte, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "{{- /* Generated from %s by `make charts`. See the comments there. */ -}}\n", cmp.Or(t.from, c.kustomization))
	if t.condition != "" {
		fmt.Fprintf(&out, "{{- if %s }}\n", t.condition)
	}
	found := false
	for _, object := range objects {
		if !t.selects(object) {
			continue
		}
		found = true
		text, err := c.object(t, object)
		if err != nil {
			return nil, fmt.Errorf("%s %v: %w", object["kind"], object["metadata"], err)
		}
		out.WriteString("---\n" + text)
	}
	if !found {
		return nil, fmt.Errorf("%s has no object of kinds %v", cmp.Or(t.from, c.kustomization), t.kinds)
	}
	if c.narrowed != nil && slices.Contains(t.kinds, "ClusterRole") {
		text, err := c.narrowed.leaveOut(out.String(), "")
		if err != nil {
			return nil, err
		}
		out.Reset()
		out.WriteString(text + c.narrowed.roles(c.accountValue))
	}
	if t.condition != "" {
		out.WriteString("{{- end }}\n")
	}
	return []byte(out.String()), nil
}

// selects reports whether an object belongs in the template.
func (t template) selects(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return slices.Contains(t.kinds, kind) && (t.only == "" || name == t.only) && (t.without == "" || name != t.without)
}

// object returns an object's text for a template. It replaces kustomize's labels with the chart's,
// and the namespace and account with actions.
func (c chart) object(t template, object map[string]any) (string, error) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("the object lacks metadata")
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	object["metadata"] = metadata
	metadata["labels"] = placeLabels
	if t.keep != "" {
		annotations := map[string]any{placeKeep: ""}
		given, _ := metadata["annotations"].(map[string]any)
		maps.Copy(annotations, given)
		metadata["annotations"] = annotations
	}
	var encoded bytes.Buffer
	encoder := yaml.NewEncoder(&encoded)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(object); err != nil {
		return "", err
	}
	text := encoded.String()
	if strings.Contains(text, "{{") {
		return "", fmt.Errorf("the object contains {{, which Helm would interpret as an action")
	}
	text = c.parametrize(text)
	if !labelsLine.MatchString(text) {
		return "", fmt.Errorf("the text lacks the placeholder for labels")
	}
	text = labelsLine.ReplaceAllLiteralString(text, "  labels:\n    {{- include \"xylem.labels\" . | nindent 4 }}")
	if t.keep != "" {
		text = keepLine.ReplaceAllLiteralString(text, "    {{- if "+t.keep+" }}\n    helm.sh/resource-policy: keep\n    {{- end }}")
	}
	return text, nil
}

// parametrize replaces the namespace and the account's name with the chart's values.
func (c chart) parametrize(text string) string {
	const release, subject, names = "{{ .Release.Namespace }}", "- kind: ServiceAccount\n  name: ", "resourceNames:\n  - "
	prefix := cmp.Or(c.accountPrefix, c.accountValue)
	return strings.NewReplacer(append([]string{
		"system:serviceaccount:" + namespace + ":" + c.account, "system:serviceaccount:" + release + ":" + prefix,
		subject + c.account + "\n", subject + c.accountValue + "\n",
		names + c.account + "\n", names + c.accountValue + "\n",
		namespace, release,
	}, c.values...)...).Replace(text)
}
