-- Rackloom frames for Wireshark and tshark: what each frame says, and which frame answers which.
--
--     tshark -X lua_script:scripts/rackloom.lua -r n0-p0--n1-p1.pcapng
--
-- The law is docs/wire-format.md. The names of fields are those of `rackloom decode --json` with `rackloom.` in front; a
-- test reads one capture with both and compares every value. A frame whose hop check fails is believed in nothing, as a
-- receiver believes it in nothing.
--
-- It keeps no frame. For what belongs together it remembers numbers: requests by stream and number, packets by stream and
-- packet number. A capture of one link shows each frame once; captures of several links are best opened one by one.

local rackloom = Proto("rackloom", "Rackloom")

---- settings -----------------------------------------------------------------------------------------------------------

rackloom.prefs.ether_type = Pref.uint("EtherType", 0x88B5, "The rack's EtherType")
rackloom.prefs.udp_port = Pref.uint("UDP port", 34997, "Port on which whole Ethernet frames travel inside UDP; 0 is none")
rackloom.prefs.verify_end_to_end =
    Pref.bool("Verify end-to-end checks", false, "Computed byte by byte in Lua: slow for long frames")

---- words --------------------------------------------------------------------------------------------------------------

local KINDS = {
    [1] = "data", [2] = "ack", [3] = "hello", [4] = "heartbeat", [5] = "report", [6] = "credit",
    [7] = "link-ack", [8] = "link-nack", [9] = "link-init", [10] = "link-init-echo", [11] = "pause",
}
local DATA, ACK, HELLO, HEARTBEAT, REPORT, CREDIT = 1, 2, 3, 4, 5, 6
local LINK_ACK, LINK_NACK, LINK_INIT, LINK_INIT_ECHO, PAUSE = 7, 8, 9, 10, 11
local CLASSES = { [0] = "request", [1] = "reply", [2] = "bulk", [3] = "bulk-reply" }
local REQUEST, BULK = 0, 2
local CHECKS = { [0] = "absent", [1] = "good", [2] = "bad", [3] = "not verified" }
local STATES =
    { [0] = "init", [1] = "up", [2] = "suspect", [3] = "down", [4] = "probing", [5] = "admin-down" }
local ATOMICS = { [0] = "fetch-add", [1] = "compare-swap", [2] = "swap", [3] = "set" }
local SIGNALS = { [0] = "set", [1] = "add" }
local CODES = {
    [1] = "no-such-region", [2] = "bad-key", [3] = "wrong-tenant", [4] = "out-of-bounds",
    [5] = "permission-denied", [6] = "revoked", [7] = "misaligned", [8] = "memory-failed", [9] = "source-failed",
}
local OPERATIONS = {
    [1] = "select", [2] = "store", [3] = "load", [4] = "atomic", [5] = "signal", [6] = "put", [7] = "get",
    [8] = "message", [9] = "offer", [10] = "pull", [11] = "void", [16] = "load-reply", [17] = "atomic-reply",
    [18] = "get-data", [19] = "refusal", [20] = "received", [32] = "ack", [33] = "grant",
}
local SELECT, STORE, LOAD, ATOMIC, SIGNAL, PUT, GET, MESSAGE, OFFER, PULL, VOID = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local LOAD_REPLY, ATOMIC_REPLY, GET_DATA, REFUSAL, RECEIVED, OP_ACK, OP_GRANT = 16, 17, 18, 19, 20, 32, 33

---- fields -------------------------------------------------------------------------------------------------------------

local fields = {}

local function field(kind, name, title, ...)
    fields[name] = ProtoField[kind]("rackloom." .. name, title, ...)
end

field("uint8", "kind", "Kind", base.DEC, KINDS, 0x0f)
field("uint16", "epoch", "Epoch", base.HEX)
field("uint16", "length", "Length")
field("uint8", "hop_limit", "Hop limit")
field("uint8", "channel", "Channel")
field("uint16", "session", "Session", base.HEX)
field("uint32", "seq", "Link sequence")
field("uint32", "link_ack", "Link ack")
field("uint32", "consumed", "Credits consumed")
field("uint32", "freed", "Credits freed")
field("uint32", "hop_check", "Hop check", base.HEX)
field("bool", "marked", "It has met congestion", 8, nil, 0x10)
field("string", "problem", "Problem")
field("string", "info", "Summary")

field("uint16", "destination", "Destination member")
field("uint16", "source", "Source member")
field("uint8", "class", "Class", base.DEC, CLASSES)
field("uint8", "op_count", "Operations")
field("uint16", "tenant", "Tenant")
field("uint16", "entropy", "Entropy", base.HEX)
field("bool", "ack_now", "Acknowledge at once", 8, nil, 0x01)
field("bool", "again", "Sent before", 8, nil, 0x02)
field("uint32", "demand", "Packets that wait behind it")
field("uint32", "source_incarnation", "Incarnation of the source", base.HEX)
field("uint32", "destination_incarnation", "Incarnation of the destination", base.HEX)
field("uint32", "psn", "Packet sequence number")
field("uint32", "first_op", "First operation")
field("uint8", "ack.class", "Ack class", base.DEC, CLASSES)
field("uint32", "ack.psn", "Ack: next packet")
field("uint32", "ack.op", "Ack: next operation not visible")
field("uint32", "end_to_end", "End-to-end check", base.HEX)
field("uint8", "end_to_end_check", "End-to-end check status", base.DEC, CHECKS)

field("uint8", "op", "Operation", base.DEC, OPERATIONS)
field("uint32", "op.number", "Number")
field("uint32", "op.region", "Region")
field("uint64", "op.key", "Key", base.HEX)
field("uint64", "op.offset", "Offset", base.HEX)
field("uint64", "op.length", "Length")
field("uint8", "op.atomic", "Atomic", base.DEC, ATOMICS, 0x7f)
field("uint64", "op.width", "Width in bytes")
field("uint64", "op.value", "Value")
field("uint64", "op.compare", "Compare")
field("uint8", "op.signal", "Signal", base.DEC, SIGNALS)
field("uint32", "op.counted", "Operations that the signal counts")
field("uint64", "op.start", "First byte of the whole put", base.HEX)
field("uint64", "op.total", "Length of the whole put")
field("uint64", "op.tag", "Tag", base.HEX)
field("uint32", "op.of", "Speaks of operation")
field("uint8", "op.of_class", "Of class", base.DEC, CLASSES)
field("uint32", "op.position", "Position")
field("uint8", "op.code", "Code", base.DEC, CODES)
field("uint64", "op.budget", "Eager budget that comes back")
field("uint32", "op.next_psn", "Next packet")
field("uint32", "op.next_op", "Next operation not visible")
field("bool", "op.hole", "A hole was seen", 8, nil, 0x80)
field("bool", "op.marked", "A packet was taken that had met congestion", 8, nil, 0x40)
field("bytes", "op.bitmap", "Packets beyond the hole")
field("bytes", "op.data", "Data")

field("uint16", "hello.node", "Member")
field("uint16", "hello.port", "Port")
field("uint8", "hello.plane", "Plane")
field("bool", "hello.requests_answer", "Answer requested")
field("uint16", "hello.frame_bytes_max", "Largest frame")
field("uint64", "hello.incarnation", "Incarnation", base.HEX)
field("uint64", "hello.received_incarnation", "Incarnation received", base.HEX)
field("uint32", "hello.options", "Options", base.HEX)
field("uint32", "heartbeat.number", "Number")
field("uint32", "heartbeat.received_number", "Last number received")
field("uint16", "heartbeat.state", "Link state", base.DEC, STATES)
field("uint16", "heartbeat.intervals", "Intervals until the next one")
field("uint32", "heartbeat.digest", "Digest of link reports", base.HEX)
field("uint16", "report.origin", "Origin")
field("uint64", "report.incarnation", "Incarnation", base.HEX)
field("uint32", "report.number", "Number")
field("uint16", "report.edge", "Edge")
field("bool", "report.up", "Up")
field("bool", "credit.requests_answer", "Answer requested")
field("uint32", "init.number", "Name of the numbers")
field("uint32", "echo.number", "Name of the numbers")
field("uint16", "pause.quanta", "For how many times 512 bits; 0 is to go on")

field("framenum", "request_in", "Request in frame", base.NONE, frametype.REQUEST)
field("framenum", "response_in", "Response in frame", base.NONE, frametype.RESPONSE)
field("relative_time", "response_time", "Response time")
field("framenum", "acked_in", "Acknowledged in frame", base.NONE, frametype.ACK)
field("relative_time", "ack_time", "Time to acknowledgement")
field("framenum", "visible_in", "Visible as of frame", base.NONE, frametype.ACK)
field("framenum", "first_sent_in", "First sent in frame", base.NONE, frametype.RETRANS_PREV)

do
    local list = {}
    for _, one in pairs(fields) do list[#list + 1] = one end
    rackloom.fields = list
end

local problem_found = ProtoExpert.new(
    "rackloom.problem.found", "The receiver will not use this frame", expert.group.CHECKSUM, expert.severity.ERROR)
local sent_again =
    ProtoExpert.new("rackloom.sent_again", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE)
rackloom.experts = { problem_found, sent_again }

---- CRC-32C ------------------------------------------------------------------------------------------------------------

local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
local CRC = {}
for index = 0, 255 do
    local value = index
    for _ = 1, 8 do
        value = band(value, 1) == 1 and bxor(rshift(value, 1), 0x82F63B78) or rshift(value, 1)
    end
    CRC[index] = value
end

-- Over several strings, as an unsigned number.
local function crc32c(...)
    local crc = 0xFFFFFFFF
    for _, text in ipairs({ ... }) do
        for at = 1, #text do
            crc = bxor(CRC[band(bxor(crc, text:byte(at)), 0xFF)], rshift(crc, 8))
        end
    end
    crc = bxor(crc, 0xFFFFFFFF)
    return crc < 0 and crc + 4294967296 or crc
end

---- what belongs together ----------------------------------------------------------------------------------------------

-- Requests by "stream number": { frame, time, response_frame, response_time }.
local requests
-- Streams by "source>destination/class@incarnation": packets and operations with what acknowledged them.
local streams
-- What the first reading found out, by frame: lists that later readings show.
local answers, resent

local function forget()
    requests, streams, answers, resent = {}, {}, {}, {}
end

-- Called for each file.
rackloom.init = forget

local function stream_of(source, destination, class, incarnation)
    local key = source .. ">" .. destination .. "/" .. class .. "@" .. incarnation
    local stream = streams[key]
    if stream == nil then
        stream = { key = key, packets = {}, next_acked = 0, visible_in = {}, next_visible = 0 }
        streams[key] = stream
    end
    return stream
end

-- Whether counter `a` comes before `b`; they wrap at 32 bits.
local function before(a, b)
    local distance = (b - a) % 4294967296
    return distance > 0 and distance < 2147483648
end

-- Nothing that a packet says can make this go on for long: no window is larger.
local STEPS_MAX = 65536

local function acknowledge(stream, psn, op, frame, time)
    local steps = 0
    while before(stream.next_acked, psn) and steps < STEPS_MAX do
        local packet = stream.packets[stream.next_acked]
        if packet ~= nil and packet.acked_in == nil then packet.acked_in, packet.acked_at = frame, time end
        stream.next_acked = (stream.next_acked + 1) % 4294967296
        steps = steps + 1
    end
    steps = 0
    while before(stream.next_visible, op) and steps < STEPS_MAX do
        stream.visible_in[stream.next_visible] = frame
        stream.next_visible = (stream.next_visible + 1) % 4294967296
        steps = steps + 1
    end
end

local function duration(from, to)
    local nanoseconds = math.floor((to - from) * 1e9 + 0.5)
    return NSTime.new(math.floor(nanoseconds / 1e9), nanoseconds % 1e9)
end

---- operations ---------------------------------------------------------------------------------------------------------

local function exactly(bytes)
    return function(payload) return payload == bytes end
end
local function any() return true end

-- By kind: whether a payload of so many bytes, these flags and this field can be.
local SHAPES = {
    [SELECT] = exactly(4),
    [STORE] = any,
    [LOAD] = function(payload, _, range) return payload == 4 and range(12, 4):le_uint() <= 256 end,
    [ATOMIC] = function(payload, flags) return payload == 16 and band(flags, 0x7f) <= 3 end,
    [SIGNAL] = function(payload, flags) return payload == 12 and flags <= 1 end,
    [PUT] = function(payload) return payload >= 16 end,
    [GET] = exactly(4),
    [MESSAGE] = any,
    [OFFER] = exactly(4),
    [PULL] = exactly(4),
    [VOID] = any,
    [LOAD_REPLY] = any,
    [ATOMIC_REPLY] = exactly(8),
    [GET_DATA] = any,
    [REFUSAL] = function(payload, _, range) return payload == 0 and range(8, 4):le_uint() <= 3 end,
    [RECEIVED] = exactly(8),
    [OP_ACK] = function(payload, flags) return payload <= 512 and band(flags, 0x3f) <= 3 end,
    [OP_GRANT] = function(payload, flags, range) return payload == 0 and flags <= 3 and range(8, 4):le_uint() == 0 end,
}

local function add(tree, name, range) return tree:add_le(fields[name], range) end
local function add_value(tree, name, range, value) return tree:add(fields[name], range, value):set_generated() end

local function add_data(tree, range, header, payload)
    add_value(tree, "op.length", range(2, 2), UInt64(payload - header))
    if payload > header then tree:add(fields["op.data"], range(12 + header, payload - header)) end
end

local function add_address(tree, range, region)
    if region ~= nil then add_value(tree, "op.region", range(4, 8), region) end
    add(tree, "op.offset", range(4, 8))
end

local function add_wide_length(tree, range)
    tree:add(fields["op.length"], range(12, 4), UInt64(range(12, 4):le_uint()))
end

-- By kind: show the rest of an operation. `range` is the whole of it, `payload` the length of what follows its header.
local SHOW = {
    [SELECT] = function(tree, range)
        add(tree, "op.region", range(12, 4))
        add(tree, "op.key", range(4, 8))
    end,
    [STORE] = function(tree, range, payload, region)
        add_address(tree, range, region)
        add_data(tree, range, 0, payload)
    end,
    [LOAD] = function(tree, range, _, region)
        add_address(tree, range, region)
        add_wide_length(tree, range)
    end,
    [ATOMIC] = function(tree, range, _, region)
        add_address(tree, range, region)
        add(tree, "op.atomic", range(1, 1))
        add_value(tree, "op.width", range(1, 1), UInt64(range(1, 1):uint() >= 0x80 and 8 or 4))
        add(tree, "op.value", range(12, 8))
        add(tree, "op.compare", range(20, 8))
    end,
    [SIGNAL] = function(tree, range, _, region)
        add_address(tree, range, region)
        add(tree, "op.signal", range(1, 1))
        add(tree, "op.value", range(12, 8))
        add(tree, "op.counted", range(20, 4))
    end,
    [PUT] = function(tree, range, payload, region)
        add_address(tree, range, region)
        add(tree, "op.start", range(12, 8))
        add(tree, "op.total", range(20, 8))
        add_data(tree, range, 16, payload)
    end,
    [GET] = function(tree, range, _, region)
        add_address(tree, range, region)
        add_wide_length(tree, range)
    end,
    [MESSAGE] = function(tree, range, payload)
        add(tree, "op.tag", range(4, 8))
        add_data(tree, range, 0, payload)
    end,
    [OFFER] = function(tree, range)
        add(tree, "op.tag", range(4, 8))
        add_wide_length(tree, range)
    end,
    [PULL] = function(tree, range)
        add(tree, "op.of", range(4, 4))
        add_wide_length(tree, range)
    end,
    [VOID] = function(tree, range, payload)
        add_data(tree, range, 0, payload)
    end,
    [LOAD_REPLY] = function(tree, range, payload)
        add(tree, "op.of", range(4, 4))
        add_data(tree, range, 0, payload)
    end,
    [ATOMIC_REPLY] = function(tree, range)
        add(tree, "op.of", range(4, 4))
        add(tree, "op.value", range(12, 8))
    end,
    [GET_DATA] = function(tree, range, payload)
        add(tree, "op.of", range(4, 4))
        add(tree, "op.position", range(8, 4))
        add_data(tree, range, 0, payload)
    end,
    [REFUSAL] = function(tree, range)
        add(tree, "op.of", range(4, 4))
        add(tree, "op.of_class", range(8, 1))
        add(tree, "op.code", range(1, 1))
    end,
    [RECEIVED] = function(tree, range)
        add(tree, "op.of", range(4, 4))
        add(tree, "op.budget", range(12, 8))
    end,
    [OP_ACK] = function(tree, range, payload)
        tree:add(fields["op.of_class"], range(1, 1), band(range(1, 1):uint(), 0x3f))
        add(tree, "op.hole", range(1, 1))
        if band(range(1, 1):uint(), 0x40) ~= 0 then add(tree, "op.marked", range(1, 1)) end
        add(tree, "op.next_psn", range(4, 4))
        add(tree, "op.next_op", range(8, 4))
        if payload > 0 then tree:add(fields["op.bitmap"], range(12, payload)) end
    end,
    [OP_GRANT] = function(tree, range)
        add(tree, "op.of_class", range(1, 1))
        add(tree, "op.next_psn", range(4, 4))
    end,
}

-- Kinds that are answered by name, and for those that answer: the class of what they speak of.
local ASKS = { [LOAD] = true, [ATOMIC] = true, [GET] = true, [PULL] = true, [MESSAGE] = true, [OFFER] = true }
local ANSWERS = {
    [LOAD_REPLY] = REQUEST, [ATOMIC_REPLY] = REQUEST, [GET_DATA] = BULK, [RECEIVED] = REQUEST, [PULL] = REQUEST,
}

-- Remember what a frame asks and answers, on its first reading.
local function remember(frame, context, kind, number, range)
    local class = ANSWERS[kind]
    if kind == REFUSAL then class = range(8, 1):uint() end
    if class ~= nil then
        local key = stream_of(context.destination, context.source, class, context.destination_incarnation).key
        local request = requests[key .. "#" .. range(4, 4):le_uint()]
        if request ~= nil then
            answers[frame.number] = answers[frame.number] or {}
            answers[frame.number][number] = request
            if request.response_frame == nil then
                request.response_frame, request.response_time = frame.number, frame.abs_ts
            end
        end
    end
    local key = context.stream.key .. "#" .. number
    if requests[key] == nil then requests[key] = { frame = frame.number, time = frame.abs_ts } end
end

-- Show which frame answers which.
local function show_relations(tree, frame, context, kind, number, range)
    local answered = answers[frame.number] and answers[frame.number][number]
    if answered ~= nil then
        add_value(tree, "request_in", range, answered.frame)
        add_value(tree, "response_time", range, duration(answered.time, frame.abs_ts))
    end
    local request = requests[context.stream.key .. "#" .. number]
    if request ~= nil and request.response_frame ~= nil then
        add_value(tree, "response_in", range, request.response_frame)
        if ASKS[kind] then
            add_value(tree, "response_time", range, duration(request.time, request.response_time))
        end
    end
    local visible_in = context.stream.visible_in[number]
    if visible_in ~= nil then add_value(tree, "visible_in", range, visible_in) end
end

-- All operations of a frame: whether they make sense, and in a few words what they are.
local function operations(tvb, frame, tree, context, start, stop)
    local at, number, region = start, context.first_op, nil
    local words, counts = {}, {}
    while at < stop do
        if stop - at < 12 then return false, words, counts end
        local payload = tvb(at + 2, 2):le_uint()
        if at + 12 + payload > stop then return false, words, counts end
        local range = tvb(at, 12 + payload)
        local kind, flags = range(0, 1):uint(), range(1, 1):uint()
        local shape = SHAPES[kind]
        if shape == nil or not shape(payload, flags, range) then return false, words, counts end
        local name = OPERATIONS[kind]
        local item = tree:add(fields["op"], range(0, 1))
        item:set_len(12 + payload)
        if kind == SELECT then region = range(12, 4):le_uint() end
        local is_numbered = kind ~= SELECT and kind ~= OP_ACK and kind ~= OP_GRANT
        if is_numbered then
            add_value(item, "op.number", range(0, 1), number)
            if not frame.visited then remember(frame, context, kind, number, range) end
        end
        SHOW[kind](item, range, payload, region)
        if is_numbered then
            show_relations(item, frame, context, kind, number, range)
            number = (number + 1) % 4294967296
        end
        if kind == OP_ACK and not frame.visited then
            local class = band(flags, 0x3f)
            local stream = stream_of(context.destination, context.source, class, context.destination_incarnation)
            acknowledge(stream, range(4, 4):le_uint(), range(8, 4):le_uint(), frame.number, frame.abs_ts)
        end
        if counts[name] == nil then words[#words + 1] = name end
        counts[name] = (counts[name] or 0) + 1
        at = at + 12 + payload
    end
    return true, words, counts
end

---- routed frames ------------------------------------------------------------------------------------------------------

local function end_to_end_status(tvb, stop)
    if band(tvb(3, 1):uint(), 1) == 0 then return 0 end
    if not rackloom.prefs.verify_end_to_end then return 3 end
    local rest = stop > 72 and tvb:raw(72, stop - 72) or ""
    return crc32c(tvb:raw(32, 36), rest) == tvb(68, 4):le_uint() and 1 or 2
end

local function packet_relations(tvb, frame, tree, context)
    local psn = tvb(52, 4):le_uint()
    local packets = context.stream.packets
    if not frame.visited then
        if packets[psn] == nil then
            packets[psn] = { frame = frame.number, time = frame.abs_ts }
        else
            resent[frame.number] = packets[psn].frame
        end
    end
    local first = resent[frame.number]
    if first ~= nil then
        add_value(tree, "first_sent_in", tvb(52, 4), first):add_proto_expert_info(sent_again)
    end
    local packet = packets[psn]
    if packet ~= nil and packet.acked_in ~= nil then
        add_value(tree, "acked_in", tvb(52, 4), packet.acked_in)
        add_value(tree, "ack_time", tvb(52, 4), duration(packet.time, packet.acked_at))
    end
end

local function piggyback(tvb, frame, tree, context)
    local class = tvb(43, 1):uint()
    if class == 0xff then return "" end
    add(tree, "ack.class", tvb(43, 1))
    add(tree, "ack.psn", tvb(60, 4))
    add(tree, "ack.op", tvb(64, 4))
    local psn, op = tvb(60, 4):le_uint(), tvb(64, 4):le_uint()
    if not frame.visited then
        local stream = stream_of(context.destination, context.source, class, context.destination_incarnation)
        acknowledge(stream, psn, op, frame.number, frame.abs_ts)
    end
    return string.format(" ack %s psn %d op %d", CLASSES[class], psn, op)
end

-- Why the frame will not be used, if so; and what the information column says.
local function routed(tvb, frame, tree, kind, stop)
    local class, ack_class = tvb(36, 1):uint(), tvb(43, 1):uint()
    if CLASSES[class] == nil or (ack_class ~= 0xff and CLASSES[ack_class] == nil) then
        return "malformed", KINDS[kind]
    end
    local context = {
        source = tvb(34, 2):le_uint(),
        destination = tvb(32, 2):le_uint(),
        destination_incarnation = tvb(48, 4):le_uint(),
        first_op = tvb(56, 4):le_uint(),
    }
    context.stream = stream_of(context.source, context.destination, class, tvb(44, 4):le_uint())
    for _, one in ipairs({
        { "destination", 32, 2 }, { "source", 34, 2 }, { "class", 36, 1 }, { "op_count", 37, 1 },
        { "tenant", 38, 2 }, { "entropy", 40, 2 }, { "ack_now", 42, 1 }, { "again", 42, 1 }, { "source_incarnation", 44, 4 },
        { "destination_incarnation", 48, 4 }, { "psn", 52, 4 }, { "first_op", 56, 4 },
    }) do
        add(tree, one[1], tvb(one[2], one[3]))
    end
    -- Up to 31 packets are exact, more are multiples of 32.
    local demand = math.floor(tvb(42, 1):uint() / 4)
    if demand > 31 then demand = (demand - 31) * 32 end
    if demand > 0 then tree:add(fields["demand"], tvb(42, 1), demand) end
    if kind == DATA then packet_relations(tvb, frame, tree, context) end
    local ack = piggyback(tvb, frame, tree, context)
    add(tree, "end_to_end", tvb(68, 4))
    local status = end_to_end_status(tvb, stop)
    add_value(tree, "end_to_end_check", tvb(68, 4), status)
    local whole, words, counts = operations(tvb, frame, tree, context, 72, stop)
    for index, word in ipairs(words) do
        if counts[word] > 1 then words[index] = word .. " x" .. counts[word] end
    end
    local info = string.format("%s %d to %d %s", KINDS[kind], context.source, context.destination, CLASSES[class])
    if kind == DATA then
        info = info .. string.format(" seq %d psn %d", tvb(12, 4):le_uint(), tvb(52, 4):le_uint())
    end
    info = info .. " [" .. table.concat(words, ", ") .. "]" .. ack
    if status == 2 then return "end-to-end-check", info end
    return (not whole) and "malformed" or nil, info
end

---- frames between neighbours ------------------------------------------------------------------------------------------

local function add_all(tree, tvb, prefix, list)
    for _, one in ipairs(list) do add(tree, prefix .. one[1], tvb(32 + one[2], one[3])) end
end

local function hello(tvb, tree)
    add_all(tree, tvb, "hello.", {
        { "node", 0, 2 }, { "port", 2, 2 }, { "plane", 4, 1 }, { "requests_answer", 5, 1 },
        { "frame_bytes_max", 6, 2 }, { "incarnation", 8, 8 }, { "received_incarnation", 16, 8 }, { "options", 24, 4 },
    })
    return string.format("hello from %d port %d", tvb(32, 2):le_uint(), tvb(34, 2):le_uint())
end

local function heartbeat(tvb, tree)
    local state = tvb(40, 2):le_uint()
    if STATES[state] == nil then return nil end
    add_all(tree, tvb, "heartbeat.", {
        { "number", 0, 4 }, { "received_number", 4, 4 }, { "state", 8, 2 }, { "intervals", 10, 2 }, { "digest", 12, 4 },
    })
    return string.format("heartbeat %d received %d %s", tvb(32, 4):le_uint(), tvb(36, 4):le_uint(), STATES[state])
end

-- One report at `at`. Returns its text and its length, or nil if it is cut.
local function one_report(tvb, tree, at, rest)
    if rest < 16 then return nil end
    local count = tvb(at + 2, 2):le_uint()
    local length = 16 + 4 * count
    if rest < length then return nil end
    add(tree, "report.origin", tvb(at, 2))
    add(tree, "report.incarnation", tvb(at + 4, 8))
    add(tree, "report.number", tvb(at + 12, 4))
    local up = 0
    for index = 0, count - 1 do
        local entry = at + 16 + 4 * index
        add(tree, "report.edge", tvb(entry, 2))
        -- W-63: the other bits name the neighbour's incarnation
        local is_up = tvb(entry + 2, 2):le_uint() % 4 == 1
        tree:add(fields["report.up"], tvb(entry + 2, 2), is_up)
        if is_up then up = up + 1 end
    end
    local text = string.format("%d of %d, %d of %d links up", tvb(at + 12, 4):le_uint(), tvb(at, 2):le_uint(), up, count)
    return text, length
end

local function report(tvb, tree, length)
    local texts, at = {}, 0
    while at < length do
        local text, used = one_report(tvb, tree, 32 + at, length - at)
        if text == nil then return nil end
        texts[#texts + 1] = text
        at = at + used
    end
    return "report " .. table.concat(texts, "; ")
end

local function credit(tvb, tree)
    local is_requested = tvb(32, 1):uint() == 1
    tree:add(fields["credit.requests_answer"], tvb(32, 1), is_requested)
    return is_requested and "credit, answer requested" or "credit"
end

local function link_ack(tvb) return string.format("link-ack %d", tvb(16, 4):le_uint()) end

local function link_nack(tvb) return string.format("link-nack %d", tvb(16, 4):le_uint()) end

local function link_init(tvb, tree)
    add(tree, "init.number", tvb(32, 4))
    return string.format("link-init %d at %d", tvb(32, 4):le_uint(), tvb(12, 4):le_uint())
end

local function link_init_echo(tvb, tree)
    add(tree, "echo.number", tvb(32, 4))
    return string.format("link-init-echo %d", tvb(32, 4):le_uint())
end

local function pause(tvb, tree)
    add(tree, "pause.quanta", tvb(32, 2))
    local quanta = tvb(32, 2):le_uint()
    return quanta == 0 and "pause over" or string.format("pause %d quanta", quanta)
end

-- By kind: the least length of a body, and who shows it.
local NEIGHBOURS = {
    [HELLO] = { 28, hello }, [HEARTBEAT] = { 16, heartbeat }, [REPORT] = { 16, report }, [CREDIT] = { 1, credit },
    [LINK_ACK] = { 0, link_ack }, [LINK_NACK] = { 0, link_nack },
    [LINK_INIT] = { 4, link_init }, [LINK_INIT_ECHO] = { 4, link_init_echo },
    [PAUSE] = { 2, pause },
}

---- the frame ----------------------------------------------------------------------------------------------------------

-- Why a receiver goes no further, in the order in which it asks.
local function refusal(tvb)
    if tvb:len() < 32 then return "truncated" end
    local version, kind = rshift(tvb(2, 1):uint(), 4), band(tvb(2, 1):uint(), 15)
    if version ~= 1 then return "bad-version" end
    if KINDS[kind] == nil then return "malformed" end
    local is_routed = kind == DATA or kind == ACK
    local stop = 32 + tvb(6, 2):le_uint()
    if tvb:len() < stop or (is_routed and stop < 72) then return "truncated" end
    local covers_all = not is_routed or band(tvb(3, 1):uint(), 4) ~= 0
    local body = (covers_all and stop > 32) and tvb:raw(32, stop - 32) or ""
    local is_unchecked = is_routed and band(tvb(3, 1):uint(), 2) ~= 0
    local check = is_unchecked and 0 or crc32c(tvb:raw(0, 28), body)
    if check ~= tvb(28, 4):le_uint() then return "hop-check" end
    return nil, kind, stop
end

local function show_problem(tree, tvb, problem)
    add_value(tree, "problem", tvb(0, tvb:len()), problem):add_proto_expert_info(problem_found)
end

local function show_summary(tree, tvb, frame, info)
    frame.cols.info = info
    tree:append_text(", " .. info)
    add_value(tree, "info", tvb(0, tvb:len()), info):set_hidden()
end

-- Inside UDP come whole Ethernet frames: one, or several where the capture was made before the kernel cut what was sent.
local function in_datagram(tvb, frame, root)
    local at = 0
    while tvb:len() - at >= 46 and tvb(at + 14, 2):le_uint() == 0x4C52 do
        local bytes = math.min(46 + tvb(at + 20, 2):le_uint(), tvb:len() - at)
        Dissector.get("eth_withoutfcs"):call(tvb(at, bytes):tvb(), frame, root)
        at = at + bytes
    end
    return at
end

function rackloom.dissector(tvb, frame, root)
    if tvb:len() < 2 then return 0 end
    if tvb(0, 2):le_uint() ~= 0x4C52 then
        return in_datagram(tvb, frame, root)
    end
    frame.cols.protocol = "RACKLOOM"
    local tree = root:add(rackloom, tvb())
    local problem, kind, stop = refusal(tvb)
    if problem ~= nil then
        show_problem(tree, tvb, problem)
        show_summary(tree, tvb, frame, "not used: " .. problem)
        return tvb:len()
    end
    for _, one in ipairs({
        { "kind", 2, 1 }, { "epoch", 4, 2 }, { "length", 6, 2 }, { "hop_limit", 8, 1 }, { "channel", 9, 1 },
        { "session", 10, 2 },
        { "seq", 12, 4 }, { "link_ack", 16, 4 }, { "consumed", 20, 4 }, { "freed", 24, 4 }, { "hop_check", 28, 4 },
    }) do
        add(tree, one[1], tvb(one[2], one[3]))
    end
    if band(tvb(3, 1):uint(), 0x10) ~= 0 then add(tree, "marked", tvb(3, 1)) end
    local info
    local neighbour = NEIGHBOURS[kind]
    if neighbour == nil then
        problem, info = routed(tvb, frame, tree, kind, stop)
    else
        info = stop - 32 >= neighbour[1] and neighbour[2](tvb, tree, stop - 32) or nil
        problem = info == nil and "malformed" or nil
    end
    info = (info or KINDS[kind])
        .. string.format(" credits %d/%d", tvb(20, 4):le_uint(), tvb(24, 4):le_uint())
    if problem ~= nil then
        show_problem(tree, tvb, problem)
        info = info .. " (" .. problem .. ")"
    end
    show_summary(tree, tvb, frame, info)
    return stop
end

---- where the frames are -----------------------------------------------------------------------------------------------

local registered = {}

local function register(table_name, number)
    local dissectors = DissectorTable.get(table_name)
    if registered[table_name] ~= nil then dissectors:remove(registered[table_name], rackloom) end
    registered[table_name] = number > 0 and number or nil
    if number > 0 then dissectors:add(number, rackloom) end
end

local function register_all()
    register("ethertype", rackloom.prefs.ether_type)
    register("udp.port", rackloom.prefs.udp_port)
end

rackloom.prefs_changed = register_all
forget()
register_all()
-- Ports of the udp wire are in a rack file, or the kernel's choice: a datagram is known by what is in it.
rackloom:register_heuristic("udp", function(tvb, frame, root) return in_datagram(tvb, frame, root) > 0 end)
