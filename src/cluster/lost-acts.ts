/** A change that the database lost in a failover and that an instance still knew. */
export interface LostAct {
	readonly kind: "key" | "account" | "project" | "budget";
	readonly subject: string;
	/** `redone`: the act revoked a right and was repeated. `lost`: it granted something that an operator must repeat. */
	readonly outcome: "redone" | "lost";
	readonly atMs: number;
}

const SHOWN = 100;
const NAMED = 5;

/** Changes found missing within the last day, newest first. */
export async function readLostActs(statements: Query): Promise<readonly LostAct[]> {
	return statements<LostAct>`
		select kind, subject, outcome, (extract(epoch from at) * 1000)::float8 as "atMs" from lost_act
		where found_at > now() - interval '1 day' order by found_at desc, seq desc limit ${SHOWN}`;
}

type Query = <Row>(strings: TemplateStringsArray, ...values: readonly number[]) => Promise<readonly Row[]>;

export const mustBeRepeated = ({ outcome }: LostAct): boolean => outcome === "lost";

/** Tells which changes an operator must repeat; undefined if none. */
export function lostActsProblem(acts: readonly LostAct[]): string | undefined {
	const lost = acts.filter(mustBeRepeated);
	if (lost.length === 0) return undefined;
	const named = lost.slice(0, NAMED).map(({ kind, subject }) => `${kind} ${subject}`);
	const more = lost.length > NAMED ? ` and ${lost.length - NAMED} more` : "";
	return `the database lost acts in a failover: ${named.join(", ")}${more}. Repeat them`;
}
