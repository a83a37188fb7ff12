{{/* Object names are part of the contract and do not depend on the release name, because a host has only one Xylem. */}}

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

{{/* The user's affinity with two fixed requirements: the Pods run only on Linux, and never on a
virtual node, regardless of its taints. Required node terms are alternatives, so each term gets both
requirements. */}}
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

{{/* Converts a Go duration that the schema accepts to seconds. */}}
{{- define "xylem.seconds" -}}
{{- $units := dict "ns" 0.000000001 "us" 0.000001 "µs" 0.000001 "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 }}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9.]+[a-zµ]+" . -1 }}
{{- $sum = addf $sum (mulf (float64 (regexFind "[0-9.]+" .)) (get $units (regexFind "[a-zµ]+" .))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{/* Rejects values that the schema cannot check and that would prevent the manager from starting. */}}
{{- define "xylem.checkValues" -}}
{{- $duration := include "xylem.seconds" .Values.fence.duration | float64 }}
{{- $probe := include "xylem.seconds" .Values.fence.probeInterval | float64 }}
{{- if lt $duration 1.0 }}
{{- fail (printf "fence.duration %s: must be at least 1s" .Values.fence.duration) }}
{{- end }}
{{- if gt (mulf $probe 3.0) (addf $duration 0.000001) }}
{{- fail (printf "fence.probeInterval (%s) is more than a third of fence.duration (%s). Set fence.probeInterval to %ss or less, or fence.duration to %ss or more"
  .Values.fence.probeInterval .Values.fence.duration (divf $duration 3.0 | toString) (mulf $probe 3.0 | toString)) }}
{{- end }}
{{- range $name := list "orphanInterval" "recheckInterval" }}
{{- $interval := get $.Values $name }}
{{- if lt (include "xylem.seconds" $interval | float64) 1.0 }}
{{- fail (printf "%s %s: must be at least 1s" $name $interval) }}
{{- end }}
{{- end }}
{{- if gt (float64 .Values.nodeAPI.memberSessions) (float64 .Values.nodeAPI.sessions) }}
{{- fail (printf "nodeAPI.memberSessions (%v) is more than nodeAPI.sessions (%v). Lower nodeAPI.memberSessions, or raise nodeAPI.sessions" .Values.nodeAPI.memberSessions .Values.nodeAPI.sessions) }}
{{- end }}
{{- if and .Values.nodeAPI.certificate.secretName .Values.nodeAPI.certificate.request }}
{{- fail "nodeAPI.certificate: set secretName or request, not both" }}
{{- end }}
{{- if gt (float64 .Values.renewTokensAfter) 0.6 }}{{/* with --set, the value is a string */}}
{{- fail (printf "renewTokensAfter %v: the maximum is 0.6" .Values.renewTokensAfter) }}
{{- end }}
{{- end }}
