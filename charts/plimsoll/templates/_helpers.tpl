{{/* What every object is found by. */}}
{{- define "plimsoll.labels" -}}
app.kubernetes.io/name: plimsoll
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* What the Service and the Deployment find pods by. */}}
{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: plimsoll
app.kubernetes.io/component: controller
{{- end }}

{{/* The controller's configuration file. */}}
{{- define "plimsoll.config" -}}
{{- if .Values.config -}}
{{- if .Values.prometheus.url }}{{ fail "config is the whole configuration: write the URL there, and leave prometheus.url empty" }}{{ end -}}
{{ toYaml .Values.config }}
{{- else if .Values.prometheus.url -}}
defaultSource: prometheus
sources:
- name: prometheus
  prometheus: {url: {{ .Values.prometheus.url | quote }}}
{{- else -}}
defaultSource: metrics-server
sources:
- name: metrics-server
  metricsServer: {}
{{- end -}}
{{- end }}
