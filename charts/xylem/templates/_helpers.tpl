{{/* Names are the contract's, whatever the release is called: a host has one Xylem. */}}

{{- define "xylem.selectorLabels" -}}
app.kubernetes.io/name: xylem
control-plane: controller-manager
{{- end }}

{{- define "xylem.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: xylem
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "xylem.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* The user's affinity; each of its required node terms (any of which will do)
with what holds always: never in a member, whatever the taints of its virtual
node, and on Linux. */}}
{{- define "xylem.affinity" -}}
{{- $always := list (dict "key" "xylem.io/virtual-node" "operator" "DoesNotExist") (dict "key" "kubernetes.io/os" "operator" "In" "values" (list "linux")) }}
{{- $affinity := deepCopy .Values.affinity }}
{{- $node := $affinity.nodeAffinity | default dict }}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := list }}
{{- range ($required.nodeSelectorTerms | default (list dict)) }}
{{- $terms = append $terms (merge (dict "matchExpressions" (concat (.matchExpressions | default list) $always)) .) }}
{{- end }}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) }}
{{- $_ := set $affinity "nodeAffinity" $node }}
{{- toYaml $affinity }}
{{- end }}

{{- define "xylem.topologySpreadConstraints" -}}
{{- $selector := dict "matchLabels" (include "xylem.selectorLabels" . | fromYaml) }}
{{- $constraints := list }}
{{- range (.Values.topologySpreadConstraints | default (list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway"))) }}
{{- $constraints = append $constraints (merge (deepCopy .) (dict "labelSelector" $selector)) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}
