// Package stock is the job of "demo stock": several processes sell the units of
// one stock, one at a time, by reading a plain file, thinking, and writing it
// anew. Only a lock keeps them apart. Some are killed in the middle of it.
//
// # How the count stays honest
//
// The file holds what is left and the list of the sales, and is replaced in one
// step (a rename), so that a seller killed at any point has either sold and
// counted its unit, or neither. After the replacement the seller tells the shop
// over a pipe. Both records are needed: the file knows of the sale of a seller
// that was killed before it could tell; what sellers told knows of the sales
// that another one's replacement of the file has undone. The sales that count
// are the union. In a job without a lock it is far larger than the stock.
package stock
