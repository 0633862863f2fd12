package canonical_test

import (
	"encoding/json"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sample is a type for which texts are made and compared.
type sample struct {
	name  string
	new   func() any
	whole bool // all canonical texts must be recognised
}

func samples() []sample {
	return []sample{
		{"Pod", func() any { return new(corev1.Pod) }, true},
		{"Secret", func() any { return new(corev1.Secret) }, true},
		{"Node", func() any { return new(corev1.Node) }, true},
		{"Event", func() any { return new(corev1.Event) }, true},
		{"Service", func() any { return new(corev1.Service) }, true},
		{"Deployment", func() any { return new(appsv1.Deployment) }, true},
		{"ControllerRevision", func() any { return new(appsv1.ControllerRevision) }, true},
		{"HorizontalPodAutoscaler", func() any { return new(autoscalingv2.HorizontalPodAutoscaler) }, true},
		{"CronJob", func() any { return new(batchv1.CronJob) }, true},
		{"Lease", func() any { return new(coordinationv1.Lease) }, true},
		{"NetworkPolicy", func() any { return new(networkingv1.NetworkPolicy) }, true},
		{"numbers", func() any { return new(numbers) }, true},
		{"omissions", func() any { return new(omissions) }, true},
		{"methods", func() any { return new(methods) }, true},
		{"tree", func() any { return new(tree) }, true},
		{"defaulted", func() any { return new(defaulted) }, false},
		{"unstable", func() any { return new(unstable) }, false},
		{"keeper", func() any { return new(keeper) }, true},
		{"kept", func() any { return new(kept) }, false},
	}
}

type numbers struct {
	Bool    bool    `json:"bool"`
	Int8    int8    `json:"int8"`
	Int16   int16   `json:"int16,omitempty"`
	Int32   int32   `json:"int32"`
	Int64   int64   `json:"int64"`
	Int     int     `json:"int,omitzero"`
	Uint8   uint8   `json:"uint8"`
	Uint16  uint16  `json:"uint16,omitempty"`
	Uint32  uint32  `json:"uint32"`
	Uint64  uint64  `json:"uint64"`
	Float32 float32 `json:"float32"`
	Float64 float64 `json:"float64,omitempty"`
	Zeroed  float64 `json:"zeroed,omitzero"`
	PBool   *bool   `json:"pbool,omitempty"`
	PInt    *int    `json:"pint"`
	PPInt   **int   `json:"ppint,omitempty"`
	Small   *int8   `json:"small,omitzero"`
}

type inner struct {
	A int    `json:"a,omitempty"`
	B string `json:"b"`
}

type embedded struct {
	Inside string `json:"inside,omitempty"`
	Over   string `json:"over,omitempty"`
}

type omissions struct {
	embedded    `json:",inline"`
	Over        int                      `json:"over,omitempty"`
	NoTag       string                   // has its Go name in JSON
	Hidden      string                   `json:"-"`
	Struct      inner                    `json:"struct,omitempty"`
	ZeroStruct  inner                    `json:"zeroStruct,omitzero"`
	BothStruct  inner                    `json:"bothStruct,omitempty,omitzero"`
	PStruct     *inner                   `json:"pStruct,omitempty"`
	List        []string                 `json:"list"`
	EmptyList   []inner                  `json:"emptyList,omitempty"`
	ZeroList    []inner                  `json:"zeroList,omitzero"`
	BothList    []*inner                 `json:"bothList,omitempty,omitzero"`
	Lists       [][]int                  `json:"lists,omitempty"`
	Map         map[string]string        `json:"map"`
	EmptyMap    map[string]inner         `json:"emptyMap,omitempty"`
	ZeroMap     map[string]*inner        `json:"zeroMap,omitzero"`
	Named       map[name][]name          `json:"named,omitempty"`
	Bytes       []byte                   `json:"bytes"`
	EmptyBytes  []byte                   `json:"emptyBytes,omitempty"`
	Array       [2]int                   `json:"array"`
	ZeroArray   [2]int                   `json:"zeroArray,omitzero"`
	EmptyArray  [0]int                   `json:"emptyArray,omitempty"`
	Time        metav1.Time              `json:"time"`
	EmptyTime   metav1.Time              `json:"emptyTime,omitempty"`
	ZeroTime    metav1.Time              `json:"zeroTime,omitempty,omitzero"`
	PTime       *metav1.Time             `json:"pTime,omitempty"`
	ZeroPTime   *metav1.Time             `json:"zeroPTime,omitzero"`
	Any         any                      `json:"any,omitempty"`
	ZeroAny     any                      `json:"zeroAny,omitzero"`
	ZeroStdTime time.Time                `json:"zeroStdTime,omitzero"`
	Chosen      chosen                   `json:"chosen,omitzero"`
	PChosen     *chosen                  `json:"pChosen,omitzero"`
	ByNumber    map[int]string           `json:"byNumber,omitempty"`
	Raw         json.RawMessage          `json:"raw,omitempty"`
	Number      json.Number              `json:"number,omitempty"`
	Dotted      string                   `json:"a.b/c-d_e:f$,omitempty"`
	Bool        bool                     `json:"bool,omitempty"`
	ZeroBool    bool                     `json:"zeroBool,omitzero"`
	String      string                   `json:"string,omitempty"`
	Ext         apiruntime.RawExtension  `json:"ext,omitempty"`
	ZeroExt     apiruntime.RawExtension  `json:"zeroExt,omitzero"`
	PExt        *apiruntime.RawExtension `json:"pExt,omitempty"`
}

type name string

// chosen has its own IsZero method.
type chosen struct {
	N int `json:"n"`
}

func (c chosen) IsZero() bool { return c.N == 7 }

// methods has types with methods of their own.
type methods struct {
	Quantity   resource.Quantity            `json:"quantity"`
	PQuantity  *resource.Quantity           `json:"pQuantity,omitempty"`
	Quantities map[string]resource.Quantity `json:"quantities,omitempty"`
	IntOr      intstr.IntOrString           `json:"intOr"`
	ZeroIntOr  intstr.IntOrString           `json:"zeroIntOr,omitzero"`
	PIntOr     *intstr.IntOrString          `json:"pIntOr,omitempty"`
	Micro      metav1.MicroTime             `json:"micro"`
	PMicro     *metav1.MicroTime            `json:"pMicro,omitempty"`
	Times      map[string]metav1.Time       `json:"times,omitempty"`
	Duration   metav1.Duration              `json:"duration"`
	Fields     *metav1.FieldsV1             `json:"fields,omitempty"`
	Extension  apiruntime.RawExtension      `json:"extension"`
	Own        own                          `json:"own"`
	Owns       []own                        `json:"owns,omitempty"`
	ByOwn      map[string]own               `json:"byOwn,omitempty"`
	Text       text                         `json:"text"`
	Shouts     shouts                       `json:"shouts"`
}

// own has a MarshalJSON method on its pointer, which is not used for values without an address.
type own struct {
	N int `json:"n"`
}

func (o *own) MarshalJSON() ([]byte, error) { return json.Marshal([]int{o.N}) }

func (o *own) UnmarshalJSON(b []byte) error {
	var n []int
	if json.Unmarshal(b, &n) == nil && len(n) == 1 {
		o.N = n[0]
		return nil
	}
	var plain struct {
		N int `json:"n"`
	}
	err := json.Unmarshal(b, &plain)
	o.N = plain.N
	return err
}

// text is encoded in upper case.
type text string

func (t text) MarshalText() ([]byte, error) { return []byte("T" + t), nil }

func (t *text) UnmarshalText(b []byte) error {
	if len(b) == 0 || b[0] != 'T' {
		return errors.New("no T")
	}
	*t = text(b[1:])
	return nil
}

// reads only has its own method for decoding.
type reads string

func (r *reads) UnmarshalJSON(b []byte) error {
	var s string
	err := json.Unmarshal(b, &s)
	*r = reads(s + "!")
	return err
}

// shouts panics.
type shouts struct {
	N int `json:"n"`
}

func (s *shouts) UnmarshalJSON(b []byte) error {
	if string(b) == "13" {
		panic("13")
	}
	return json.Unmarshal(b, &s.N)
}

func (s shouts) MarshalJSON() ([]byte, error) { return json.Marshal(s.N) }

type tree struct {
	Name string          `json:"name"`
	Kids []tree          `json:"kids,omitempty"`
	Next *tree           `json:"next,omitempty"`
	By   map[string]tree `json:"by,omitempty"`
	Self selves          `json:"self,omitempty"`
}

type selves []selves

// defaulted has defaults.
type defaulted struct {
	Size   int32             `json:"size" default:"3"`
	Color  string            `json:"color,omitempty" default:"red"`
	On     *bool             `json:"on,omitempty" default:"true"`
	Share  *float64          `json:"share,omitempty" default:"0.5"`
	List   []string          `json:"list,omitempty" default:"[\"a\"]"`
	Filled nested            `json:"filled,omitzero"`
	Inside nested            `json:"inside"`
	Ptr    *nested           `json:"ptr,omitempty"`
	Kids   []nested          `json:"kids,omitempty"`
	By     map[string]nested `json:"by,omitempty"`
	Box    any               `json:"box,omitempty"`
	Pair   *[1]nested        `json:"pair"`
	Rest   string            `json:"rest,omitempty"`
}

type nested struct {
	N    int    `json:"n,omitempty" default:"5"`
	Text string `json:"text,omitempty"`
}

// kept has fields that are not recognised one by one.
type kept struct {
	*Lazy  `json:",inline"`
	Quoted int    `json:"quoted,string"`
	Plain  string `json:"plain"`
}

// unstable has values that never, or seldom, stay the same when they are encoded and decoded.
type unstable struct {
	ByText map[text]int `json:"byText,omitempty"`
	Reads  reads        `json:"reads,omitempty"`
}

// keeper contains an unstable struct.
type keeper struct {
	Kept   kept   `json:"kept"`
	Quoted quoted `json:"quoted"`
	Plain  string `json:"plain"`
}

type quoted struct {
	N int `json:"n,string"`
}

// Lazy is embedded by its pointer.
type Lazy struct {
	Late string `json:"late,omitempty"`
}
