package structural

func errorsIn(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

func asFloat(v any) float64 {
	if v, ok := v.(int64); ok {
		return float64(v)
	}
	v2, _ := v.(float64)
	return v2
}
