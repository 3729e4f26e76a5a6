{{- define "plumbline.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "plumbline.config" -}}
{{- if .Values.config -}}
{{ .Values.config }}
{{- else if .Values.components.rook -}}
{{ .Files.Get "files/rook.yaml" }}
{{- else -}}
{{ .Files.Get "files/plumbline.yaml" }}
{{- end -}}
{{- end -}}

{{/* A changed configuration gets another name, so that the DaemonSet is rolled out with it. */}}
{{- define "plumbline.configMap" -}}
plumbline-config-{{ include "plumbline.config" . | sha256sum | trunc 10 }}
{{- end -}}
