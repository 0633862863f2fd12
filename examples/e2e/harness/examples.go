package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// wardrobeBinary is the program of examples/wardrobe, built when first asked for.
var wardrobeBinary = sync.OnceValues(func() (string, error) {
	const folder = root + "/examples/wardrobe"
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		return "", err
	}
	for _, file := range files { // reading the source makes it an input of the tests
		if _, err := os.ReadFile(file); err != nil {
			return "", err
		}
	}
	return build(root, "./examples/wardrobe")
})

// exampleBinary builds the program of an example.
func exampleBinary(name string) (string, error) {
	switch name {
	case "hello":
		return helloBinary()
	case "wardrobe":
		return wardrobeBinary()
	}
	return "", fmt.Errorf("there is no example %q; want hello or wardrobe", name)
}

func (o Options) example() string { return cmp.Or(o.Example, "hello") }
