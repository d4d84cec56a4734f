import { RIGHTS, ROLE_LABELS, ROLES, type Role } from "../../members/roles.ts";
import { DataTable } from "../parts/table.tsx";

const ROWS = Object.entries(RIGHTS).map(([id, { says, roles }]) => ({ id, says, roles }));
const CELLS = { all: "yes", own: "his own" } as const;

/** From the table that the routes ask. */
export function RolesSection() {
	return (
		<>
			<p>
				Each member of an account has one role in it. Owners and admins give roles, in the settings; a new role counts
				from the next click. Everybody sees the account's figures, nobody a key's secret but who makes it.
			</p>
			<DataTable
				label="What each role may do"
				rows={ROWS}
				rowKey={(row) => row.id}
				empty={null}
				columns={[
					{ label: "May", lead: true, render: (row) => row.says },
					...ROLES.map((role: Role) => ({
						label: ROLE_LABELS[role],
						render: (row: (typeof ROWS)[number]) => {
							const scope = row.roles[role];
							return scope === undefined ? <span className="dim">–</span> : CELLS[scope];
						},
					})),
				]}
			/>
			<p>
				A developer sees, uses and changes the keys that he made; a replacement of such a key is his too. Batches and
				their files belong to the whole account, as they do for its keys. “{ROLE_LABELS.member}” is who joined before
				there were roles: he may what he could before, until an owner or admin gives him one of the others.
			</p>
			<p>
				Who loses the right to keys has still seen the secrets of those that he made. So whoever takes it away, or
				removes him, says whether these keys are revoked.
			</p>
		</>
	);
}
