import { Button, Modal } from "@mantine/core";
import { type GivenRole, ROLE_LABELS } from "../../members/roles.ts";
import { api } from "../api.ts";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import type { MemberKeyView, MemberRow } from "../views.ts";

/** Before a member loses the right to keys: asks what becomes of those that he made, whose secrets this one may have kept. */
export function RightsDialog(props: {
	accountId: string;
	member: MemberRow;
	/** Null: he is removed. */
	role: GivenRole | null;
	keys: readonly MemberKeyView[];
	onClose: () => void;
	onDone: () => void;
}) {
	const { accountId, member, role, keys } = props;
	const what = role === null ? "Remove" : `Make ${ROLE_LABELS[role].toLowerCase()}`;
	const change = useAction(async (choice: "keep" | "revoke") => {
		if (role === null) await api.removeMember(accountId, member.userId, choice);
		else await api.changeRole(accountId, member.userId, role, choice);
		props.onDone();
	});
	return (
		<Modal
			opened
			onClose={props.onClose}
			title={role === null ? `Remove ${member.name}` : `${member.name}: ${ROLE_LABELS[role]}`}
			closeButtonProps={{ "aria-label": "Close" }}
		>
			<div className="stack">
				<p>
					{member.email} has seen the secrets of {keys.length === 1 ? "this key" : `these ${keys.length} keys`}, which
					still {keys.length === 1 ? "works" : "work"}:
				</p>
				<ul>
					{keys.map((key) => (
						<li key={key.id}>
							{key.name} (…{key.lastFour})
						</li>
					))}
				</ul>
				{change.error && <Problem error={change.error} />}
				<div className="form-end">
					<Button variant="default" onClick={props.onClose}>
						Cancel
					</Button>
					<Button variant="default" loading={change.busy} onClick={() => void change.run("keep")}>
						{what}, keep the keys
					</Button>
					<Button className="danger-filled" loading={change.busy} onClick={() => void change.run("revoke")}>
						{what} and revoke the keys
					</Button>
				</div>
			</div>
		</Modal>
	);
}
