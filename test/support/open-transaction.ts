import type { Sql, TransactionSql } from "postgres";

/** Runs `work` in a transaction, which keeps its locks until the returned function commits it. */
export async function openTransaction(sql: Sql, work: (tx: TransactionSql) => Promise<unknown>) {
	const [done, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const transaction = sql.begin(async (tx) => {
		await work(tx);
		done.resolve();
		await commit.promise;
	});
	transaction.catch(done.reject);
	await done.promise;
	return async (): Promise<void> => {
		commit.resolve();
		await transaction;
	};
}
