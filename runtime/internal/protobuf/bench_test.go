package protobuf_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	corev1 "k8s.io/api/core/v1"
)

// somePod is about as large as pods are: 3 KB as a message.
const somePod = `{"metadata":{"name":"web-6d4cf56db6-abcde","generateName":"web-6d4cf56db6-","namespace":"shop","uid":"2f0c9f4e-6f5b-4a0e-9a58-0e7d7a7c1d11",
"resourceVersion":"123456789","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","pod-template-hash":"6d4cf56db6","tier":"front","version":"v17"},
"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z","prometheus.io/port":"9090","prometheus.io/scrape":"true"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"7f0c9f4e-6f5b-4a0e-9a58-0e7d7a7c1d12","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}},
{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:07Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}},"f:hostIP":{},"f:phase":{},"f:podIP":{}}},"subresource":"status"}]},
"spec":{"volumes":[{"name":"config","configMap":{"name":"web","defaultMode":420}},{"name":"token","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}],"defaultMode":420}}],
"containers":[{"name":"web","image":"registry.example.com/shop/web:v17","args":["--listen=:8080","--config=/etc/web/config.yaml"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],
"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"MODE","value":"production"},{"name":"REGION","value":"north"}],
"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"500m","memory":"512Mi"}},"volumeMounts":[{"name":"config","mountPath":"/etc/web"},{"name":"token","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/ready","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"runAsNonRoot":true,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}}},
{"name":"proxy","image":"registry.example.com/mesh/proxy:1.2.3","ports":[{"containerPort":15001,"protocol":"TCP"}],"resources":{"limits":{"cpu":"200m","memory":"128Mi"}},"imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","nodeSelector":{"kubernetes.io/os":"linux"},"serviceAccountName":"web","nodeName":"node-17","securityContext":{"fsGroup":1000,"supplementalGroups":[1000,2000]},"schedulerName":"default-scheduler",
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:08Z"},{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-02T03:04:08Z"},{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}],
"hostIP":"10.0.0.17","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"web","state":{"running":{"startedAt":"2026-01-02T03:04:07Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example.com/shop/web:v17","imageID":"sha256:0123456789abcdef0123456789abcdef","containerID":"containerd://0123456789abcdef","started":true}],"qosClass":"Burstable"}}`

// podAndMirror is the pod, and the same without methods.
func podAndMirror(b testing.TB) (pod *corev1.Pod, m *protobuf.Message, mirror any, message []byte) {
	pod = &corev1.Pod{}
	must(b, json.Unmarshal([]byte(somePod), pod))
	t := mirrors{}.of(reflect.TypeFor[corev1.Pod]())
	m, err := new(protobuf.Compiler).Of(t)
	must(b, err)
	v := reflect.New(t)
	reflection(v.Elem(), reflect.ValueOf(pod).Elem())
	message, err = pod.Marshal()
	must(b, err)
	got, err := m.Append(nil, v.Interface())
	must(b, err)
	if string(got) != string(message) {
		b.Fatalf("the mirror is %x, want %x", got, message)
	}
	return pod, m, v.Interface(), message
}

func BenchmarkAppend(b *testing.B) {
	pod, m, mirror, message := podAndMirror(b)
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		dst := make([]byte, 2*len(message))
		for b.Loop() {
			if _, err := pod.MarshalToSizedBuffer(dst[:pod.Size()]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		dst := make([]byte, 0, 2*len(message))
		for b.Loop() {
			if _, err := m.Append(dst, mirror); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSize(b *testing.B) {
	pod, m, mirror, _ := podAndMirror(b)
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod.Size()
		}
	})
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Size(mirror); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	_, m, mirror, message := podAndMirror(b)
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			if err := new(corev1.Pod).Unmarshal(message); err != nil {
				b.Fatal(err)
			}
		}
	})
	guarded, err := new(protobuf.Compiler).Of(reflect.TypeFor[corev1.Pod]())
	must(b, err)
	b.Run("generated and checked", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			if err := guarded.Unmarshal(message, new(corev1.Pod)); err != nil {
				b.Fatal(err)
			}
		}
	})
	t := reflect.TypeOf(mirror).Elem()
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			if err := m.Unmarshal(message, reflect.New(t).Interface()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	t := mirrors{}.of(reflect.TypeFor[corev1.Pod]())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := new(protobuf.Compiler).Of(t); err != nil {
			b.Fatal(err)
		}
	}
}
