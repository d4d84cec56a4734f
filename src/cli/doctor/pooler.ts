/** A session with the database as a client sees it. */
export type Session = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const SETTING = "tollgate.doctor";

/**
 * Whether two sessions of ours share the sessions of the server, one transaction at a time: then what is set or listened
 * to in one of them is another's, or nobody's. A pooler that gives a session to a client for good does not.
 */
export async function isPooledByTransaction(a: Session, b: Session): Promise<boolean> {
	const token = crypto.randomUUID();
	const mine = () => a(`select pg_backend_pid() as pid, current_setting('${SETTING}', true) as token`);
	await a(`select set_config('${SETTING}', '${token}', false)`);
	const [before] = await mine();
	await b("begin");
	try {
		// Takes a session of the server and keeps it: with a pooler the one that is free is likely to be ours.
		const [others] = await b(`select pg_backend_pid() as pid, current_setting('${SETTING}', true) as token`);
		const [after] = await mine();
		return (
			others?.pid === before?.pid || others?.token === token || after?.pid !== before?.pid || after?.token !== token
		);
	} finally {
		await b("rollback");
	}
}
