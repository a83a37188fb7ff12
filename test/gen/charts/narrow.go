package main

import (
	"fmt"
	"strings"
)

// narrowed is a rule in a ClusterRole. If a value lists namespaces, a Role and a RoleBinding in
// each listed namespace grant the permissions instead.
type narrowed struct {
	// namespaces is the value that lists the namespaces. rule is the rule as YAML.
	namespaces, rule string
	// role is the name of the Roles and RoleBindings.
	role string
	// line is a line of the rule that the template has only if condition is true.
	line, condition string
}

// template returns the rule as a template.
func (n *narrowed) template() string {
	return strings.Replace(n.rule, n.line, "{{- if "+n.condition+" }}\n"+n.line+"{{- end }}\n", 1)
}

// leaveOut omits the rule from the text if the value lists namespaces. The rule must occur once.
func (n *narrowed) leaveOut(text, indent string) (string, error) {
	rule := indented(n.rule, indent)
	if strings.Count(text, rule) != 1 {
		return "", fmt.Errorf("the rule for %s occurs %d times, not once:\n%s", n.namespaces, strings.Count(text, rule), rule)
	}
	return strings.Replace(text, rule, "{{- if not "+n.namespaces+" }}\n"+indented(n.template(), indent)+"{{- end }}\n", 1), nil
}

// roles returns the template for a Role and a RoleBinding in each of the namespaces.
func (n *narrowed) roles(account string) string {
	return strings.NewReplacer("NAMESPACES", n.namespaces, "ROLE", n.role, "ACCOUNT", strings.Replace(account, "{{ .", "{{ $.", 1), "RULE\n", n.template()).Replace(`{{- range $namespace := NAMESPACES }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  labels:
    {{- include "xylem.labels" $ | nindent 4 }}
  name: ROLE
  namespace: {{ $namespace }}
rules:
RULE
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels:
    {{- include "xylem.labels" $ | nindent 4 }}
  name: ROLE
  namespace: {{ $namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ROLE
subjects:
- kind: ServiceAccount
  name: ACCOUNT
  namespace: {{ $.Release.Namespace }}
{{- end }}
`)
}

// rights returns the permissions in each of the namespaces, which `helm test` checks.
func (n *narrowed) rights() string {
	return "{{- range " + n.namespaces + " }}\n- namespace: {{ . }}\n  rules:\n" + indented(n.template(), "  ") + "{{- end }}\n"
}

func indented(text, indent string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(indent + line)
	}
	return out.String()
}
