import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { Panel } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Id, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { useSession } from "../session.tsx";
import type { AccountView, MemberKeyView, MemberRow } from "../views.ts";
import { RemoveDialog } from "./settings-member-remove.tsx";

/** Who may act for the account; owners invite and remove. */
export function MembersPanel({ account }: { account: AccountView }) {
	const { me } = useSession();
	const members = useResource(`members ${account.id}`, () => api.members(account.id));
	const isOwner = account.role === "owner";
	const [leaving, setLeaving] = useState<{ member: MemberRow; keys: readonly MemberKeyView[] }>();
	const remove = useAction(async (member: MemberRow) => {
		const { items } = await api.memberKeys(account.id, member.userId);
		if (items.length > 0) return setLeaving({ member, keys: items });
		// What was made meanwhile is not kept unasked.
		await api.removeMember(account.id, member.userId, "revoke");
		await members.reload();
	});
	const withdraw = useAction(async (id: string) => {
		await api.withdrawInvitation(account.id, id);
		await members.reload();
	});
	const failure = remove.error ?? withdraw.error;
	return (
		<Panel title="Members" flush>
			{failure && <Problem error={failure} />}
			<DataTable
				label="Members"
				rows={members.data?.items}
				rowKey={(member) => member.userId}
				error={members.error}
				retry={() => void members.reload()}
				skeletonRows={2}
				empty={<Empty title="No members." />}
				columns={[
					{
						label: "Name",
						lead: true,
						render: (member) => `${member.name}${member.userId === me?.user.id ? " (you)" : ""}`,
					},
					{ label: "Email", render: (member) => member.email },
					{ label: "Role", render: (member) => (member.role === "owner" ? "Owner" : "Member") },
					{ label: "Since", render: (member) => <Moment atMs={member.joinedAtMs} /> },
					{
						label: "Action",
						act: true,
						right: true,
						render: (member) =>
							isOwner && member.userId !== me?.user.id ? (
								<button type="button" className="link" onClick={() => void remove.run(member)}>
									Remove
								</button>
							) : null,
					},
				]}
			/>
			{members.data && members.data.invitations.length > 0 && (
				<DataTable
					label="Open invitations"
					rows={members.data.invitations}
					rowKey={(invitation) => invitation.id}
					empty={null}
					columns={[
						{ label: "Invited", lead: true, render: (invitation) => invitation.email },
						{ label: "Role", render: (invitation) => (invitation.role === "owner" ? "Owner" : "Member") },
						{ label: "Ends", render: (invitation) => <Ago atMs={invitation.expiresAtMs} /> },
						{
							label: "Action",
							act: true,
							right: true,
							render: (invitation) => (
								<button
									type="button"
									className="link"
									disabled={!isOwner}
									onClick={() => void withdraw.run(invitation.id)}
								>
									Withdraw
								</button>
							),
						},
					]}
				/>
			)}
			{leaving && (
				<RemoveDialog
					accountId={account.id}
					{...leaving}
					onClose={() => setLeaving(undefined)}
					onDone={() => {
						setLeaving(undefined);
						void members.reload();
					}}
				/>
			)}
			{isOwner && <InviteForm account={account} onInvited={() => void members.reload()} />}
		</Panel>
	);
}

function InviteForm({ account, onInvited }: { account: AccountView; onInvited: () => void }) {
	const [email, setEmail] = useState("");
	const [role, setRole] = useState<"owner" | "member">("member");
	const [made, setMade] = useState<{ email: string; link: string | null }>();
	const invite = useAction(async () => {
		const { link } = await api.invite(account.id, email.trim(), role);
		setMade({ email: email.trim(), link });
		setEmail("");
		onInvited();
	});
	return (
		<form
			className="invite"
			onSubmit={(event) => {
				event.preventDefault();
				void invite.run();
			}}
		>
			<div className="filters">
				<TextInput
					label="Invite by email"
					type="email"
					size="xs"
					required
					withAsterisk={false}
					value={email}
					onChange={(event) => setEmail(event.currentTarget.value)}
				/>
				<Select
					label="Role"
					size="xs"
					w={120}
					data={[
						{ value: "member", label: "Member" },
						{ value: "owner", label: "Owner" },
					]}
					allowDeselect={false}
					value={role}
					onChange={(value) => setRole(value === "owner" ? "owner" : "member")}
				/>
				<Button type="submit" size="xs" variant="default" loading={invite.busy}>
					Invite
				</Button>
			</div>
			{invite.error && <Problem error={invite.error} />}
			{made && (
				<Notice kind="ok">
					{made.link === null ? (
						`A mail with the invitation is on its way to ${made.email}.`
					) : (
						<>
							Mail is not set up here. Give {made.email} this link: <Id value={made.link} label="Copy the link" />
						</>
					)}
				</Notice>
			)}
		</form>
	);
}
