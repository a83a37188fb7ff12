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

{{- /* The account: its name says which host it belongs to, if it belongs to one. */ -}}
{{- define "xylem.account" -}}
{{ .Values.serviceAccount.name }}{{ with .Values.serviceAccount.hostID }}-host-{{ . }}{{ end }}
{{- end }}
