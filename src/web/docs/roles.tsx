import { RIGHTS, type Right, ROLES, type Role } from "../../console/members/roles.ts";
import { rightText, roleName } from "../labels.ts";
import { DataTable } from "../parts/table.tsx";
import { rich, t } from "../texts.tsx";

const ROWS = Object.entries(RIGHTS).map(([id, { roles }]) => ({ id, roles }));
const CELLS = { all: t("yes"), own: t("his own") } as const;

/** From the table that the routes ask. */
export function RolesSection() {
	return (
		<>
			<p>
				{t(
					"Each member of an account has one role in it. Owners and admins give roles, in the settings; a new role counts from the next click. Everybody sees the account's figures, nobody a key's secret but who makes it.",
				)}
			</p>
			<div className="short-cells">
				<DataTable
					label={t("What each role may do")}
					rows={ROWS}
					rowKey={(row) => row.id}
					empty={null}
					columns={[
						{ label: t("May"), lead: true, render: (row) => rightText(row.id as Right) },
						...ROLES.map((role: Role) => ({
							label: roleName(role),
							render: (row: (typeof ROWS)[number]) => {
								const scope = row.roles[role];
								return scope === undefined ? <span className="dim">–</span> : CELLS[scope];
							},
						})),
					]}
				/>
			</div>
			<p>
				{rich(
					"A developer sees, uses and changes the keys that he made; a replacement of such a key is his too. Batches and their files belong to the whole account, as they do for its keys. “{member}” is who joined before there were roles: he may what he could before, until an owner or admin gives him one of the others.",
					{ member: roleName("member") },
				)}
			</p>
			<p>
				{t(
					"Who loses the right to keys has still seen the secrets of those that he made. So whoever takes it away, or removes him, says whether these keys are revoked.",
				)}
			</p>
		</>
	);
}
