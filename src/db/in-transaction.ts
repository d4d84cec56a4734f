import type postgres from "postgres";
import { isConnectionLost } from "./outage.ts";

type Work<T> = (transaction: postgres.TransactionSql) => Promise<T>;

/** State of a transaction's connection. */
interface Line {
	/** Error that broke the connection; undefined while it works. */
	broken: Error | undefined;
}

/**
 * Like the driver's `begin`, with only statements, `unsafe` and `savepoint`. If the connection breaks, the transaction
 * fails and sends no more statements: a statement on a closed socket would make the driver end the process.
 */
export function inTransaction<T>(client: postgres.Sql, work: Work<T>): Promise<T> {
	const line: Line = { broken: undefined };
	const outcome = client.begin((scope) => onLine(line, scope, work)) as Promise<T>;
	outcome.catch((error: Error) => (line.broken ??= error));
	return outcome;
}

/** Runs the work. If the connection breaks, waits until the driver has noticed that and ended the transaction. */
async function onLine<T>(line: Line, scope: postgres.TransactionSql, work: Work<T>): Promise<T> {
	let fails: { error: unknown } | undefined;
	let result: T | undefined;
	try {
		result = await work(scopeOn(line, scope));
	} catch (error) {
		fails = { error };
	}
	if (line.broken !== undefined) await new Promise<never>(() => {});
	if (fails !== undefined) throw fails.error;
	return result as T;
}

/** The part of the driver's interface that Drizzle and migrations use within a transaction. */
function scopeOn(line: Line, scope: postgres.TransactionSql): postgres.TransactionSql {
	function watched<Query extends Promise<unknown>>(send: () => Query): Query {
		if (line.broken !== undefined) throw line.broken;
		const query = send();
		query.catch((error: Error) => {
			if (isConnectionLost(error)) line.broken ??= error;
		});
		return query;
	}
	const statement = (strings: TemplateStringsArray, ...values: postgres.ParameterOrFragment<never>[]) =>
		watched(() => scope(strings, ...values));
	const guard = Object.assign(statement, {
		unsafe: (text: string, values?: never[], how?: postgres.UnsafeQueryOptions) =>
			watched(() => scope.unsafe(text, values, how)),
		savepoint: <Inner>(work: Work<Inner>) =>
			scope.savepoint((inner) => onLine(line, inner as postgres.TransactionSql, work)),
	});
	return guard as unknown as postgres.TransactionSql;
}
