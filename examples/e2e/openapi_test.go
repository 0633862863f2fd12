package e2e_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	kinopenapi "github.com/getkin/kin-openapi/openapi3"
	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Every document of hello and of the kinds of Kubernetes, in every format, passes the parsers of kubectl and the validation of a
// library that does not depend on Kubernetes.
func TestOpenAPIDocumentsOfHello(t *testing.T) {
	checkDocuments(t, start(t).Kubeconfig, "com.example.v1.Widget")
}

func TestOpenAPIDocumentsOfKubernetesTypes(t *testing.T) {
	checkDocuments(t, serveKubernetes(t).kubeconfig, "io.k8s.api.core.v1.ConfigMap", "io.k8s.api.apps.v1.Deployment")
}

// checkDocuments checks all documents, and that they define the kinds.
func checkDocuments(t *testing.T, kubeconfig string, kinds ...string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		for definition := range checkV3(t, name, documents[name]) {
			defined[definition] = true
		}
	}
	for _, kind := range kinds {
		if !defined[kind] {
			t.Errorf("%s is in none of the documents %v", kind, slices.Sorted(maps.Keys(documents)))
		}
	}
	root := openapi3.NewRoot(client.OpenAPIV3()) // as kubectl explain reads them
	versions, err := root.GroupVersions()
	if err != nil || len(versions) == 0 {
		t.Errorf("%d group versions, %v", len(versions), err)
	}
	for _, gv := range versions {
		if _, err := root.GVSpec(gv); err != nil {
			t.Errorf("%v: %v", gv, err)
		}
	}
	checkV2(t, client, kinds)
}

// checkV3 checks one document and returns its definitions.
func checkV3(t *testing.T, name string, document openapi.GroupVersion) map[string]*spec.Schema {
	t.Helper()
	text, err := document.Schema("application/json")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var parsed spec3.OpenAPI
	if err := parsed.UnmarshalJSON(text); err != nil {
		t.Errorf("%s: kube-openapi: %v", name, err)
	}
	binary, err := document.Schema(openapi.ContentTypeOpenAPIV3PB)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var d openapi_v3.Document
	if err := proto.Unmarshal(binary, &d); err != nil {
		t.Fatalf("%s: protobuf: %v", name, err)
	}
	if models, err := openapiproto.NewOpenAPIV3Data(&d); err != nil {
		t.Errorf("%s: kube-openapi, protobuf: %v", name, err)
	} else if parsed.Components != nil && len(models.ListModels()) != len(parsed.Components.Schemas) {
		t.Errorf("%s: %d definitions in protobuf, %d in JSON", name, len(models.ListModels()), len(parsed.Components.Schemas))
	}
	foreign, err := kinopenapi.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatalf("%s: kin-openapi: %v", name, err)
	}
	if err := foreign.Validate(t.Context(), validation()...); err != nil {
		t.Errorf("%s: kin-openapi: %.2000v", name, err)
	}
	if parsed.Components == nil {
		return nil
	}
	return parsed.Components.Schemas
}

// validation returns options that relax the validation by kin-openapi.
func validation() []kinopenapi.ValidationOption {
	return []kinopenapi.ValidationOption{
		// A property that refers to a struct has the default {}, as in the documents of kube-apiserver, even if the struct has
		// required fields: {} is set before the defaults of the struct's fields.
		kinopenapi.DisableSchemaDefaultsValidation(),
	}
}

func checkV2(t *testing.T, client *discovery.DiscoveryClient, kinds []string) {
	t.Helper()
	d, err := client.OpenAPISchema() // in protobuf
	if err != nil {
		t.Fatal(err)
	}
	models, err := openapiproto.NewOpenAPIData(d)
	if err != nil {
		t.Fatalf("kube-openapi, v2: %v", err)
	}
	for _, kind := range kinds {
		if models.LookupModel(kind) == nil {
			t.Errorf("%s is not in v2", kind)
		}
	}
	text, err := client.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openapi_v2.ParseDocument(text); err != nil {
		t.Errorf("gnostic, v2: %v", err)
	}
	var swagger spec.Swagger
	if err := swagger.UnmarshalJSON(text); err != nil {
		t.Errorf("kube-openapi, v2: %v", err)
	}
	var foreign openapi2.T
	if err := foreign.UnmarshalJSON(text); err != nil {
		t.Fatalf("kin-openapi, v2: %v", err)
	}
	converted, err := openapi2conv.ToV3(&foreign) // the library validates only OpenAPI v3
	if err != nil {
		t.Fatalf("kin-openapi, v2: %v", err)
	}
	if err := converted.Validate(t.Context(), validation()...); err != nil {
		t.Errorf("kin-openapi, v2: %.2000v", err)
	}
}

// kubectl explain shows the values of an enumeration of k8s.io/api.
func TestKubectlExplainKubernetesTypes(t *testing.T) {
	kubectl := kubectlOn(t)
	const pod = "deployment.spec.template.spec"
	for path, want := range map[string]string{
		pod + ".restartPolicy":              "ENUM:\n    Always\n    Never\n    OnFailure",
		pod + ".containers.imagePullPolicy": "ENUM:\n    Always\n    IfNotPresent\n    Never",
		"service.spec.type":                 "ENUM:\n    ClusterIP\n    ExternalName\n    LoadBalancer\n    NodePort",
	} {
		if got := kubectl("", "explain", path).OK().Stdout; !strings.Contains(got, want) {
			t.Errorf("explain %s says\n%s\nwant %q in it", path, got, want)
		}
	}
}
