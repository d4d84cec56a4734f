import { type Ask, type Sent, sendChat } from "../chaos/chat-client.ts";
import type { Fleet, FleetMember } from "../chaos/fleet.ts";
import type { LoadKey } from "../chaos/load.ts";
import { waitFor } from "../support/wait.ts";

const USERS = 4;
const SHORT: Ask = { words: 6, stream: true, maxTokens: 30 };

/** A balancer: knows which instances are in rotation, uses them in turn and repeats no request. */
export function startBalanced(fleet: Fleet, keys: readonly LoadKey[]) {
	const sent: Sent[] = [];
	const rotation = new Set(fleet.members);
	const short = new Map<FleetMember, number>(fleet.members.map((member) => [member, 0]));
	let stopping = false;
	let turn = 0;
	const send = async (member: FleetMember, ask: Ask) => {
		const key = keys[turn++ % keys.length] as LoadKey;
		const answer = await sendChat({ member: member.index, url: member.url }, key, ask);
		sent.push(answer);
		return answer;
	};
	const users = Array.from({ length: USERS }, async () => {
		while (!stopping) {
			const member = [...rotation][turn % rotation.size] as FleetMember;
			short.set(member, (short.get(member) ?? 0) + 1);
			const answer = await send(member, SHORT);
			short.set(member, (short.get(member) ?? 0) - 1);
			// Leaves processor time to starting instances.
			await Bun.sleep(answer.complete ? 50 : 100);
		}
	});
	return {
		sent,
		send,
		/** Requests in flight to the former address have ended. */
		async leave(member: FleetMember) {
			rotation.delete(member);
			await waitFor(() => short.get(member) === 0, "the last short answer", 30_000);
		},
		enter: (member: FleetMember) => void rotation.add(member),
		async stop() {
			stopping = true;
			await Promise.all(users);
		},
	};
}
