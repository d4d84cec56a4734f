/** From the start of the process to the first good answer of /readyz, on a database that is up to date. */
import type { Figures } from "./figures.ts";
import type { World } from "./world.ts";

const STARTS = 5;

export async function startUp(world: World, figures: Figures): Promise<void> {
	for (let start = 0; start < STARTS; start++) {
		const { gateway, stop } = await world.isolated(`start${start}`);
		figures.add("start-up", "to /readyz", "ms", gateway.name, gateway.readyMs);
		await stop();
	}
}
