package cli

import "unicode/utf8"

// nodeData is a node's data in JSON: text as it is, and other bytes in base 64,
// since JSON would replace them.
type nodeData struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"`
}

func dataOf(data []byte) nodeData {
	if raw := notText(data); raw != nil {
		return nodeData{Base64: raw}
	}
	text := string(data)
	return nodeData{Data: &text}
}

// notText is data that JSON cannot carry as they are, and nil for those that it
// can.
func notText(data []byte) []byte {
	if utf8.Valid(data) {
		return nil
	}
	return data
}
