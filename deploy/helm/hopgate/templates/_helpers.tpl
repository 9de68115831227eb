{{- define "hopgate.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "hopgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hopgate.labels" -}}
{{ include "hopgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "hopgate.secret" -}}
{{- .Values.secret.existing | default (include "hopgate.name" .) -}}
{{- end -}}

{{- /* Seconds that a stopping gateway may take: until the balancer notices, its open streams, and some more. */ -}}
{{- define "hopgate.grace" -}}
{{- $limits := .Values.config.limits | default dict -}}
{{- add (int ($limits.drain_delay | default 0)) (int ($limits.drain | default 30)) 30 -}}
{{- end -}}
