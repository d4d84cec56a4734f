import { Fault } from "./fault.ts";
import { decodedName } from "./json-list-bounds.ts";

/** Maximum number of names in a text that are array indexes. The runtime stores their values as elements. */
const INDEX_NAMES_MAX = 2_048;
/** Memory of an object with such names. The worst name is "999", for which 1,000 elements are reserved. */
const INDEXED_OBJECT_BYTES = 8 * 1024;
/** Memory of parsed values as measured, with the space that a list reserves for its growth. */
const CONTAINER_BYTES = 64;
const STRING_BYTES = 32;
const VALUE_BYTES = 16;
/** Memory that is not counted: that of about 70 messages of a chat. */
const PARSED_BYTES_FREE = 16 * 1024;
/** Also matches some names that are no indexes, such as "01". */
const INDEX = /"(?:\d|\\u003\d){1,10}"/y;

/** Counts the parts of a JSON text and their memory. A base class, so that a scan allocates no further object. */
export abstract class JsonParts {
	names = 0;
	strings = 0;
	/** Number of commas so far, which separate elements and members. */
	values = 0;
	/** Number of arrays and objects so far. */
	containers = 0;
	/** Memory of objects with names that are array indexes. Counts an object again after an object or array in it. */
	#indexedBytes = 0;
	/** False after a bracket, because the next name may belong to another object. */
	isIndexed = false;
	#count = 0;

	constructor(readonly text: string) {}

	/** Number of names, strings, values, arrays and objects, which determines how long the text is parsed. */
	get parts(): number {
		return this.names + this.strings + this.values + this.containers;
	}

	/** Memory of the parsed value beyond the text's length; 0 for a value with few parts. */
	get parsedBytes(): number {
		const bytes = this.containers * CONTAINER_BYTES + this.strings * STRING_BYTES + this.values * VALUE_BYTES;
		return this.#indexedBytes + Math.max(0, bytes - PARSED_BYTES_FREE);
	}

	/** Name of the current outermost member, as written. */
	abstract name(): string;

	/** Counts the name whose quote is at `from` if it is an index. Fault `invalid_request`. */
	countName(from: number): void {
		INDEX.lastIndex = from;
		if (this.text.charCodeAt(from + 1) > 0x5c || !INDEX.test(this.text)) return;
		if (this.#count++ === INDEX_NAMES_MAX) {
			const param = decodedName(this.name()).slice(0, 64);
			const what = `more than ${INDEX_NAMES_MAX} names that are whole numbers. Use a list or put a letter in front`;
			throw new Fault("invalid_request", "The body has {what}.", { values: { what }, param });
		}
		if (!this.isIndexed) this.#indexedBytes += INDEXED_OBJECT_BYTES;
		this.isIndexed = true;
	}
}
