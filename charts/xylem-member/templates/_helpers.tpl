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

{{- /* The account's name. It contains the host's ID if the account belongs to one host. */ -}}
{{- define "xylem.account" -}}
{{ .Values.serviceAccount.name }}{{ with .Values.serviceAccount.hostID }}-host-{{ . }}{{ end }}
{{- end }}
{{/*
An optional permission for the account to access Pods, in the given namespaces or, if empty, in all.
The parts are the same as in config/member: logs, exec, debug and metrics.
*/}}
{{- define "xylem.reach" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: xylem-member-{{ .part }}
  labels:
    {{- include "xylem.labels" .root | nindent 4 }}
rules:
- apiGroups: [{{ .group | default "" | quote }}]
  resources: {{ toJson .resources }}
  verbs: {{ toJson .verbs }}
{{- $reach := . }}
{{- range $namespace := .namespaces | default (list "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if $namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: xylem-member-{{ $reach.part }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "xylem.labels" $reach.root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: xylem-member-{{ $reach.part }}
subjects:
- kind: ServiceAccount
  name: {{ include "xylem.account" $reach.root }}
  namespace: {{ $reach.root.Release.Namespace }}
{{- end }}
{{- end }}
