import type postgres from "postgres";
import { isConnectionLost } from "./outage.ts";

/**
 * The driver's `begin` for steps that wait for each other. Where the connection breaks in one of them the driver would send its
 * `rollback` to a socket that is gone, an error that nobody can catch; it hears of the end itself, and fails with that.
 */
export function inTransaction(
	client: postgres.Sql,
	work: (transaction: postgres.TransactionSql) => Promise<void>,
): Promise<void> {
	return client.begin(async (transaction) => {
		try {
			await work(transaction);
		} catch (error) {
			if (isConnectionLost(error)) await new Promise<never>(() => {});
			throw error;
		}
	});
}
