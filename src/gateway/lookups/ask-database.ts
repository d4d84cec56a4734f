import { AssertionError } from "../../base/assert.ts";
import { errorText } from "../../base/error-record.ts";
import { Fault } from "../../base/fault.ts";
import { isUnstorableText } from "../../db/statements.ts";

/** Runs a query. Fault service_unavailable with `retry-after` while Postgres is unreachable. */
export async function queryDatabase<T>(ask: () => Promise<T>): Promise<T> {
	try {
		return await ask();
	} catch (error) {
		if (error instanceof Fault || error instanceof AssertionError || isUnstorableText(error)) throw error;
		throw new Fault("service_unavailable", "The records are temporarily unavailable. Please try again.", {
			retryAfterS: 1,
			private: errorText(error),
			cause: error,
		});
	}
}
