package jsonread_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/internal/jsonread"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

type widgetSpec struct {
	Size     int32  `json:"size,omitempty"`
	Color    string `json:"color,omitempty"`
	Data     string `json:"data,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
}

type widgetStatus struct {
	Ready    bool   `json:"ready,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}

type widget = runtime.Resource[widgetSpec, widgetStatus]

var data = strings.Repeat("axle-1z141z3 ", 90)

var (
	widgetText = `{"kind":"Widget","apiVersion":"bench.example.com/v1","metadata":{"name":"w-000042","namespace":"ns-3","labels":{"app":"bench","group":"g-07","tier":"backend"},"annotations":{"example.com/owner":"team-3@example.com"}},"spec":{"size":42,"color":"red","data":"` + data + `","replicas":3}}`
	storedText = `{"kind":"Widget","apiVersion":"bench.example.com/v1","metadata":{"name":"w-000042","namespace":"ns-3","uid":"1c2b7c6e-1111-2222-3333-123456789012","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"bench","group":"g-07","tier":"backend"},"annotations":{"example.com/owner":"team-3@example.com"},"managedFields":[{"manager":"bench","operation":"Update","apiVersion":"bench.example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},"f:labels":{".":{},"f:app":{},"f:group":{},"f:tier":{}}},"f:spec":{".":{},"f:color":{},"f:data":{},"f:replicas":{},"f:size":{}}}}]},"spec":{"size":42,"color":"red","data":"` + data + `","replicas":3},"status":{}}`
	podText    = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-5d9c7c8f6b-abcde","generateName":"web-5d9c7c8f6b-","namespace":"default","uid":"1c2b7c6e-1111-2222-3333-123456789012","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web","pod-template-hash":"5d9c7c8f6b"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d9c7c8f6b","uid":"1c2b7c6e-1111-2222-3333-123456789013","controller":true,"blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"web","image":"nginx:1.25","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"b\n\"c\" <d>"},{"name":"POD","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}},"volumeMounts":[{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default","nodeName":"node-1","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"}],"qosClass":"Burstable"}}`
)

// BenchmarkRead decodes a body that creates a widget of 1.5 KB, a stored widget, and a Pod, and compares with the ordinary
// decoder.
func BenchmarkRead(b *testing.B) {
	var c jsonread.Compiler
	ways := map[string]func(text []byte, into any) bool{
		"here": c.Read,
		"strict": func(text []byte, into any) bool {
			problems, err := kjson.UnmarshalStrict(text, into)
			return err == nil && len(problems) == 0
		},
	}
	for what, read := range map[string]struct {
		text string
		into func() any
	}{
		"create": {widgetText, func() any { return new(widget) }},
		"stored": {storedText, func() any { return new(widget) }},
		"pod":    {podText, func() any { return new(corev1.Pod) }},
	} {
		for way, f := range ways {
			b.Run(what+"/"+way, func(b *testing.B) {
				text := []byte(read.text)
				b.ReportAllocs()
				for b.Loop() {
					if !f(text, read.into()) {
						b.Fatal("not read")
					}
				}
			})
		}
	}
}
