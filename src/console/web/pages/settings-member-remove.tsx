import { Button, Modal } from "@mantine/core";
import { api } from "../api.ts";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import type { MemberKeyView, MemberRow } from "../views.ts";

/** Asks what becomes of the keys that a member made, whose secrets this one may have kept. */
export function RemoveDialog(props: {
	accountId: string;
	member: MemberRow;
	keys: readonly MemberKeyView[];
	onClose: () => void;
	onDone: () => void;
}) {
	const { accountId, member, keys } = props;
	const remove = useAction(async (choice: "keep" | "revoke") => {
		await api.removeMember(accountId, member.userId, choice);
		props.onDone();
	});
	return (
		<Modal opened onClose={props.onClose} title={`Remove ${member.name}`} closeButtonProps={{ "aria-label": "Close" }}>
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
				{remove.error && <Problem error={remove.error} />}
				<div className="form-end">
					<Button variant="default" onClick={props.onClose}>
						Cancel
					</Button>
					<Button variant="default" loading={remove.busy} onClick={() => void remove.run("keep")}>
						Remove, keep the keys
					</Button>
					<Button className="danger-filled" loading={remove.busy} onClick={() => void remove.run("revoke")}>
						Remove and revoke the keys
					</Button>
				</div>
			</div>
		</Modal>
	);
}
