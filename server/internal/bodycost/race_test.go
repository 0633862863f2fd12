//go:build race

package bodycost_test

// raceDetector says that the tests run with it: then pools drop what they keep at random, and more is allocated.
const raceDetector = true
