import { createTestDatabase } from "../support/database.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { startFleet } from "./fleet.ts";
import { sendChat } from "./chat-client.ts";
const db = await createTestDatabase();
const up = await startCountingUpstream({gapMsMax:1, failures:0});
const fleet = await startFleet({databaseUrl: db.url, upstreamUrl: up.url});
try {
 const key = await fleet.key(await fleet.account());
 for (const m of fleet.members) for (let i=0;i<20;i++) await sendChat({member:m.index,url:m.url}, key, {words:3,stream:true,maxTokens:9});
 for (const m of fleet.members) m.proxy.freezeExisting();
 const t=performance.now();
 const waits=[0,1500,4000];
 await Promise.all(fleet.members.map(async (m,i)=>{ await Bun.sleep(waits[i]!); const s=performance.now(); const code = await m.stop(); console.log("stopped", i, code, (performance.now()-s).toFixed(0)); console.log((await Bun.file(m.logPath).text()).split("\n").slice(-5).map(l=>l.slice(0,300)).join("\n")); }));
} finally { await fleet.stop(); await up.stop(); await db.drop(); }
