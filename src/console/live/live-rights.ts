import type { Statements } from "../../db/statements.ts";

/** What a stream's right depends on: a session, and the account shown. */
export interface LiveRight {
	readonly userId: string;
	readonly sessionId: string;
	/** Null: for operators only. */
	readonly accountId: string | null;
}

/** Filters the rights that hold now, in one statement. */
export type HoldingRights = (rights: readonly LiveRight[]) => Promise<ReadonlySet<LiveRight>>;

/** An ended session, a removed member and a former operator have no right. */
export function createHoldingRights(statements: Statements, options: { secondFactor: boolean }): HoldingRights {
	return async (rights) => {
		if (rights.length === 0) return new Set();
		const asked = JSON.stringify(rights.map((right, nr) => ({ ...right, nr })));
		const rows = await statements<{ nr: number }>`
			select w.nr from jsonb_to_recordset(${asked}::text::jsonb) w(nr integer, "userId" text, "sessionId" text, "accountId" text)
				join session s on s.id = w."sessionId" and s.user_id = w."userId" and s.expires_at > clock_timestamp()
				join console_user u on u.id = s.user_id
			where case when w."accountId" is null then u.operator and s.company_revision is null and (u.two_factor_enabled or not ${options.secondFactor}::boolean)
				else exists (select 1 from member m left join company_sign_in c on c.account_id = m.account_id
					where m.user_id = u.id and m.account_id = w."accountId" and case when s.company_revision is null
						then m.role = 'owner' or not coalesce(c.required and c.domain_verified_at is not null, false)
						else c.revision = s.company_revision end) end`;
		return new Set(rows.flatMap(({ nr }) => rights[nr] ?? []));
	};
}
