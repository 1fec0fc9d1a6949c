// Package stock is the job of "demo stock": several processes sell the units of
// one stock, one at a time, by reading a plain file, thinking, and writing it
// anew. Only a lock keeps them apart. Some are killed in the middle of a sale.
//
// # How the count stays honest
//
// The file holds what is left and the list of the sales, and is replaced in one
// step (a rename): a seller killed at any point has either sold and counted its
// unit, or neither. After the replacement the seller reports the sale to the
// shop over a pipe. Both records are needed: only the file has the sale of a
// seller that was killed before its report; only the reports have the sales
// that another seller's replacement of the file has undone. The sales that
// count are the union of both. Without a lock there are far more of them than
// units in the stock.
package stock
