package printer_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/keelson-dev/keelson/runtime/printer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Tug is for the example. The tags of its fields are the columns of its table.
type Tug struct {
	Masts    int32       `json:"masts" print:"Masts"`
	Launched metav1.Time `json:"launched" print:"Launched"`
	Crew     []string    `json:"crew" print:"Crew,wide"`
}

// A program shows an object as a row of a table.
func ExampleOf() {
	table, err := printer.Of(reflect.TypeFor[Tug]())
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	tug := &Tug{Masts: 3, Launched: metav1.NewTime(now.Add(-76 * time.Hour)), Crew: []string{"anna", "ben"}}
	cells, err := table.Cells(nil, tug, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range table.Columns() {
		fmt.Printf("%s (%s, priority %d): %v\n", c.Name, c.Type, c.Priority, cells[i])
	}
	// Output:
	// Masts (integer, priority 0): 3
	// Launched (date, priority 0): 3d4h
	// Crew (string, priority 1): anna,ben
}
