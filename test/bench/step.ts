/** One step of a request, to be timed alone. */
export interface Step {
	readonly name: string;
	/** How many of what the name counts one call does. */
	readonly per: number;
	/** A promise is waited for, one call after the other. */
	run(): unknown;
	/** Clears away behind a sample, outside its time. */
	after?(): Promise<void>;
}
