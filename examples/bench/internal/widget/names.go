package widget

// models is the prefix of the types' names in OpenAPI, for servers that get the names from the types.
const models = "com.example.bench.v1."

// OpenAPIModelName implements OpenAPIModelNamer of k8s.io/kube-openapi.
func (Widget) OpenAPIModelName() string { return models + "Widget" }

// OpenAPIModelName implements OpenAPIModelNamer of k8s.io/kube-openapi.
func (WidgetList) OpenAPIModelName() string { return models + "WidgetList" }

// OpenAPIModelName implements OpenAPIModelNamer of k8s.io/kube-openapi.
func (WidgetSpec) OpenAPIModelName() string { return models + "WidgetSpec" }

// OpenAPIModelName implements OpenAPIModelNamer of k8s.io/kube-openapi.
func (WidgetStatus) OpenAPIModelName() string { return models + "WidgetStatus" }
