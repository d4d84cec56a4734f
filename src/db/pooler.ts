/** A session with the database as a client sees it. */
export type Session = (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const SETTING = "tollgate.doctor";

/**
 * Whether two sessions of ours share the sessions of the server, one transaction at a time: then what is set or listened
 * to in one of them is another's, or nobody's. A pooler that gives a session to a client for good does not.
 */
export async function isPooledByTransaction(a: Session, b: Session): Promise<boolean> {
	const token = crypto.randomUUID();
	const seenBy = async (session: Session) =>
		(await session(`select pg_backend_pid() as pid, current_setting('${SETTING}', true) as token`))[0];
	await a(`select set_config('${SETTING}', '${token}', false)`);
	const before = await seenBy(a);
	// Whichever session of the server is free next: the one that was ours, or ours is another then.
	const others = await seenBy(b);
	const after = await seenBy(a);
	const isShared = others?.pid === before?.pid || others?.token === token;
	return isShared || after?.pid !== before?.pid || after?.token !== token;
}
