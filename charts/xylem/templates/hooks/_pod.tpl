{{/* The Pod that runs `manager check`, the only other command in the image. Parameters: the root
context, the name of the Pod's ServiceAccount, the check's arguments, and whether to mount the list
of permissions to check. */}}
{{- define "xylem.checkPod" -}}
metadata:
  {{- with .root.Values.hooks.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  labels:
    {{- include "xylem.labels" .root | nindent 4 }}
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ .account }}
  restartPolicy: Never
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- include "xylem.affinity" .root | nindent 4 }}
  securityContext:
    {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  containers:
  - name: check
    image: {{ include "xylem.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args:
    - check
    {{- toYaml .args | nindent 4 }}
    env:
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    resources:
      requests:
        cpu: 10m
        memory: 32Mi
      limits:
        memory: 128Mi
    securityContext:
      {{- toYaml .root.Values.securityContext | nindent 6 }}
    {{- if .rights }}
    volumeMounts:
    - name: rights
      mountPath: /etc/xylem
      readOnly: true
  volumes:
  - name: rights
    configMap:
      name: xylem-test
    {{- end }}
{{- end }}

{{- define "xylem.hook" -}}
annotations:
    helm.sh/hook: {{ .hook }}
    helm.sh/hook-weight: {{ .weight | quote }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded{{ if lt .weight 0 }},hook-failed{{ end }}
    {{- if ge .weight 0 }}
    helm.sh/hook-output-log-policy: hook-succeeded,hook-failed
    {{- end }}
{{- end }}
